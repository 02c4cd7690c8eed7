// SPDX-License-Identifier: Apache-2.0
// Slices of a traced kernel; see trace_capture.h.
#include "gpu/trace_capture.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "gpu/cuda_status.h"
#include "trace/hang_report.h"

namespace deuce::trace {
namespace {

/// Records of a kernel that has ended: a slice that began again is put in order.
std::vector<Record> kept(const SliceHeader& header, std::vector<Record> records) {
  const bool full = header.wanted >= header.capacity;
  records.resize(full ? header.capacity : header.wanted);
  if (!full || header.policy != Policy::keep_newest) return records;
  std::rotate(records.begin(), records.begin() + header.wanted % header.capacity, records.end());
  return records;
}

}  // namespace

TraceCapture::~TraceCapture() {
  static_cast<void>(cudaFree(buffer_.headers));
  static_cast<void>(cudaFree(buffer_.records));
}

Status TraceCapture::allocate(int slices, uint32_t capacity, Policy policy) {
  slices_ = slices;
  buffer_.capacity = capacity;
  buffer_.policy = policy;
  const auto count = static_cast<std::size_t>(slices);
  void *headers = nullptr, *records = nullptr;
  Status status = cuda_status(cudaMalloc(&headers, count * sizeof(SliceHeader)), "cudaMalloc");
  buffer_.headers = static_cast<SliceHeader*>(headers);
  if (status.ok()) {
    status =
        cuda_status(cudaMalloc(&records, count * (capacity + 1) * sizeof(Record)), "cudaMalloc");
    buffer_.records = static_cast<Record*>(records);
  }
  if (status.ok()) {
    status = cuda_status(cudaMemset(headers, 0, count * sizeof(SliceHeader)), "cudaMemset");
  }
  if (status.ok()) {
    status =
        cuda_status(cudaMemset(records, 0, count * (capacity + 1) * sizeof(Record)), "cudaMemset");
  }
  return status;
}

Status TraceCapture::clear() {
  std::vector<SliceHeader> headers(static_cast<std::size_t>(slices_));
  const std::size_t bytes = headers.size() * sizeof(SliceHeader);
  Status status = cuda_status(
      cudaMemcpy(headers.data(), buffer_.headers, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (const SliceHeader& header : headers) {
    filled_ = std::max(filled_, std::min(header.wanted, header.capacity));
  }
  if (!status.ok() || filled_ == 0) return status;
  status = cuda_status(cudaMemset(buffer_.headers, 0, bytes), "cudaMemset");
  if (status.ok()) {
    status = cuda_status(cudaMemset2D(buffer_.records, (buffer_.capacity + 1) * sizeof(Record), 0,
                                      filled_ * sizeof(Record), headers.size()),
                         "cudaMemset2D");
  }
  return status.ok() ? cuda_status(cudaStreamSynchronize(nullptr), "clearing the slices") : status;
}

Result<std::vector<Slice>> TraceCapture::collect() const {
  std::vector<SliceHeader> headers(static_cast<std::size_t>(slices_));
  Status status =
      cuda_status(cudaMemcpy(headers.data(), buffer_.headers, headers.size() * sizeof(SliceHeader),
                             cudaMemcpyDeviceToHost),
                  "cudaMemcpy");
  std::vector<Slice> slices;
  for (std::size_t i = 0; i < headers.size() && status.ok(); ++i) {
    std::vector<Record> records(std::min(headers[i].wanted, headers[i].capacity));
    status = cuda_status(cudaMemcpy(records.data(), buffer_.records + i * (buffer_.capacity + 1),
                                    records.size() * sizeof(Record), cudaMemcpyDeviceToHost),
                         "cudaMemcpy");
    slices.push_back({headers[i], kept(headers[i], std::move(records))});
  }
  if (!status.ok()) return status;
  return slices;
}

Result<std::vector<Slice>> TraceCapture::peek() const {
  const auto count = static_cast<std::size_t>(slices_);
  const std::size_t stride = buffer_.capacity + 1;
  std::vector<SliceHeader> headers(count);
  std::vector<Record> records(count * stride);
  cudaStream_t stream = nullptr;  // one that does not wait for the kernel's
  Status status =
      cuda_status(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const auto fetch = [&](void* to, const void* from, std::size_t bytes) {
    if (!status.ok()) return;
    status = cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream),
                         "cudaMemcpyAsync");
  };
  fetch(headers.data(), buffer_.headers, count * sizeof(SliceHeader));
  fetch(records.data(), buffer_.records, records.size() * sizeof(Record));
  if (status.ok()) status = cuda_status(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  static_cast<void>(cudaStreamDestroy(stream));
  if (!status.ok()) return status;
  std::vector<Slice> slices;
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = records.begin() + static_cast<std::ptrdiff_t>(i * stride);
    slices.push_back({headers[i], in_order({first, first + buffer_.capacity})});
  }
  return slices;
}

Result<bool> ends_within(cudaEvent_t event, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaSuccess) return true;
    if (state != cudaErrorNotReady) return cuda_status(state, "traced kernel");
    if (std::chrono::duration<double>(Clock::now() - begin).count() > seconds) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace deuce::trace
