// SPDX-License-Identifier: Apache-2.0
// Checks of lengths, tables and page ids for backends whose data the host can read.
// Used before anything is computed: after it no index derived from caller data leaves a buffer.
#pragma once

#include "plan/problem.h"
#include "plan/status.h"

namespace deuce {

/// The first contradiction in kv_len, kv_start, cu_q_len, cache_row, last_page_len or a page id
/// that is needed. Columns and pages that no row of a request sees are not read.
Status check_host_data(const Problem& problem, const Call& call);

}  // namespace deuce
