# SPDX-License-Identifier: Apache-2.0
"""The files for trace viewers, read by Perfetto's own protobuf classes: what they hold is what the
summary says, slices nest, times are in order, and every arrow has two ends that point forward.
"""
import collections
import json
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml

from recorded import TOOL, RecordedCase

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2
except ImportError:
    raise SystemExit(
        "skipped: the PyPI package perfetto is not installed (scripts/install_packages)") from None

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def trace_tool(*arguments):
    return subprocess.run([TOOL, "trace", *arguments], capture_output=True, text=True, check=False)


class Perfetto(RecordedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        trace = perfetto_trace_pb2.Trace.FromString((cls.folder / "trace.pftrace").read_bytes())
        cls.packets = list(trace.packet)
        tracks = [p.track_descriptor for p in cls.packets if p.HasField("track_descriptor")]
        cls.tracks = {track.uuid: track for track in tracks}
        cls.events = [(p.timestamp, p.track_event) for p in cls.packets
                      if p.HasField("track_event")]

    def root_path(self, uuid):
        names = []
        while uuid:
            names.append(self.tracks[uuid].name)
            uuid = self.tracks[uuid].parent_uuid
        return names[::-1]

    def test_no_field_is_unknown(self):
        """A wrong field number would be kept aside, and writing the message again would move it."""
        data = self.read("trace.pftrace")
        trace = perfetto_trace_pb2.Trace.FromString(data)
        before = len(data)
        trace.DiscardUnknownFields()
        self.assertEqual(len(trace.SerializeToString()), before)

    def test_packets_are_of_one_sequence_in_order_of_time_descriptors_first(self):
        self.assertEqual({p.trusted_packet_sequence_id for p in self.packets}, {1})
        kinds = [p.HasField("track_event") for p in self.packets]
        self.assertEqual(kinds, sorted(kinds))
        times = [p.timestamp for p in self.packets]
        self.assertEqual(times, sorted(times))

    def test_tracks_are_a_plain_tree_of_runs_blocks_roles_and_warps(self):
        for track in self.tracks.values():
            self.assertFalse(track.HasField("thread") or track.HasField("process"))
            self.assertTrue(track.parent_uuid in self.tracks or not track.parent_uuid)
        paths = {tuple(self.root_path(uuid)) for uuid in self.tracks}
        run = "ping-pong: simulated, B200 (model) at 1.845 GHz"
        self.assertIn(("Deuce", run, "CTA 0 on SM 0", "softmax", "softmax warp 3"), paths)
        self.assertIn(("Deuce", run, "CTA 0 on SM 0", "tensor pipe"), paths)

    def test_slices_nest_and_close(self):
        depth = collections.Counter()
        for _, event in self.events:
            depth[event.track_uuid] += {BEGIN: 1, END: -1}.get(event.type, 0)
            self.assertGreaterEqual(depth[event.track_uuid], 0)
        self.assertEqual(set(depth.values()), {0})

    def totals(self):
        """{(run label, shown name): [count, ns]}"""
        stacks, totals = collections.defaultdict(list), collections.defaultdict(lambda: [0, 0])
        for at, event in self.events:
            if event.type == BEGIN:
                notes = {note.name: note.string_value for note in event.debug_annotations}
                shown = " ".join([event.name, *filter(None, notes.values())])
                stacks[event.track_uuid].append((shown, at))
            elif event.type == END:
                shown, begin = stacks[event.track_uuid].pop()
                run = self.root_path(event.track_uuid)[1].split(":")[0]
                totals[run, shown][0] += 1
                totals[run, shown][1] += at - begin
        return totals

    def test_totals_are_those_of_the_summary(self):
        totals = self.totals()
        for label, table in zip(("base", "ping-pong"), self.summary_totals(), strict=True):
            self.assertGreater(len(table), 30)
            want = collections.defaultdict(lambda: [0, 0])
            for (_, shown), (count, cycles) in table.items():
                want[shown][0] += count
                want[shown][1] += cycles
            for shown, (count, cycles) in want.items():
                self.assertEqual(totals[label, shown][0], count, shown)
                self.assertAlmostEqual(totals[label, shown][1] * 1.845, cycles,
                                       delta=2 * count + 1, msg=shown)

    def test_every_arrow_has_one_start_and_one_end_that_is_later(self):
        starts, ends = {}, {}
        for at, event in self.events:
            for flow in event.flow_ids:
                self.assertNotIn(flow, starts)
                starts[flow] = (at, event.name)
            for flow in event.terminating_flow_ids:
                self.assertNotIn(flow, ends)
                ends[flow] = (at, event.name)
        self.assertGreater(len(starts), 500)
        self.assertEqual(starts.keys(), ends.keys())
        for flow, (at, name) in starts.items():
            self.assertLessEqual(at, ends[flow][0])
            self.assertEqual(name.removeprefix("arrive_"), ends[flow][1].removeprefix("pass_"))

    def test_bytes_in_flight_are_a_counter_that_ends_at_zero(self):
        counters = [uuid for uuid, track in self.tracks.items() if track.HasField("counter")]
        self.assertEqual(len(counters), 2)
        for uuid in counters:
            values = [event.counter_value for _, event in self.events if event.track_uuid == uuid]
            self.assertGreater(max(values), 16384)
            self.assertEqual(values[-1], 0)

    def test_cycles_as_the_unit_give_the_cycles_of_the_summary(self):
        out = self.folder / "cycles"
        trace_tool(*self.arguments, "--time", "cycles", "--write", "perfetto", "--out", out)
        trace = perfetto_trace_pb2.Trace.FromString((out / "trace.pftrace").read_bytes())
        names = [p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")]
        self.assertEqual(names[0], "Deuce, one time unit is one cycle")
        last = max(p.timestamp for p in trace.packet)
        self.assertAlmostEqual(last, max(p.timestamp for p in self.packets) * 1.845, delta=3)


class Chrome(RecordedCase):
    def setUp(self):
        self.events = json.loads(self.read("trace.json"))["traceEvents"]

    def test_holds_the_slices_of_the_protobuf(self):
        trace = perfetto_trace_pb2.Trace.FromString(self.read("trace.pftrace"))
        slices = [p for p in trace.packet
                  if p.HasField("track_event") and p.track_event.type == BEGIN]
        want = collections.Counter(p.track_event.name for p in slices)
        got = collections.Counter(e["name"] for e in self.events if e["ph"] == "X")
        self.assertEqual(got, want)
        begins = sorted(round(e["ts"] * 1000) for e in self.events if e["ph"] == "X")
        self.assertEqual(begins, sorted(p.timestamp for p in slices))

    def test_durations_and_arrows_are_sound(self):
        self.assertTrue(all(e["dur"] >= 0 for e in self.events if e["ph"] == "X"))
        starts = {e["id"]: e for e in self.events if e["ph"] == "s"}
        ends = {e["id"]: e for e in self.events if e["ph"] == "f"}
        self.assertEqual(starts.keys(), ends.keys())
        for number, end in ends.items():
            self.assertLessEqual(starts[number]["ts"], end["ts"])
            self.assertEqual(end["bp"], "e")


class Pictures(RecordedCase):
    def test_every_picture_is_well_formed_and_needs_nothing_from_outside(self):
        names = ["timeline", "residency", "schedule", "schedule_to_scale", "edges", "phases"]
        for name in names:
            text = self.read(f"{name}.svg").decode()
            self.assertTrue(xml.fromstring(text).tag.endswith("svg"), name)
            self.assertFalse(re.search(r"(href|src|url)\s*[=(]\s*[\"']?(https?:|//)", text), name)

    def test_what_is_simulated_says_so(self):
        for name in ("timeline.svg", "schedule_to_scale.svg", "residency.svg", "timeline.html",
                     "summary.txt", "trace.json"):
            self.assertIn("simulated", self.read(name).decode(), name)
        self.assertIn("not to scale", self.read("schedule.svg").decode())

    def test_the_barrier_graph_has_every_edge_of_the_summary(self):
        graph = self.read("edges.svg").decode()
        edges = set(re.findall(r"^(\w+_\w+) +(?:mma|load|softmax|correction|epilogue|schedule)",
                               self.read("summary.txt").decode(), re.M))
        self.assertGreater(len(edges), 9)
        for edge in edges:
            self.assertIn(f">{edge}<", graph)

    def test_phases_of_two_slots_are_those_of_the_article(self):
        cells = re.findall(r">(\d) / (\d)<", self.read("phases.svg").decode())
        self.assertEqual(cells[10:15], [("0", "0"), ("1", "0"), ("0", "1"), ("1", "1"), ("0", "0")])


class Refusals(unittest.TestCase):
    def test_what_cannot_be_traced_is_refused_by_name(self):
        for arguments, sentence in (
                ("--backend hopper --score-slots 2",
                 "score_slots is 2: hopper takes 0 and 1, and 2 with more than 16 rows of a KV "
                 "head and a 16-bit cache"),
                ("--cold", "--cold: the emulator has no L2, its copies are always from DRAM"),
                ("--hang-timeout 2",
                 "--hang-timeout: of --backend hopper; the emulator reports a deadlock by itself"),
                ("--keep newest", "--keep newest: of --backend hopper; raise --records instead"),
                ("--subtract-self-cost",
                 "--subtract-self-cost: records cost the emulator no virtual time"),
                ("--row-replicas 4 --rows 64",
                 "row_replicas is 4: blackwell takes that for at most 32 query heads per KV head, "
                 "here 64"),
                ("--head-dim 96",
                 "head_dim_qk is 96, head_dim_v 96: blackwell takes 64 or 128, equal for both"),
                ("--page-size 4", "page_size is 4: blackwell needs 8 or more (cpu takes any)")):
            run = trace_tool(*arguments.split())
            self.assertEqual((run.returncode, run.stderr), (3, f"deuce trace: {sentence}\n"))

    def test_a_run_that_is_named_twice_is_refused(self):
        run = trace_tool("--compare", "base,base")
        sentence = "--compare: 'base' is named twice, its files would be the same"
        self.assertEqual((run.returncode, run.stderr), (2, f"deuce trace: {sentence}\n"))

    def test_too_few_blocks_are_said_to_be_too_few(self):
        with tempfile.TemporaryDirectory() as out:
            run = trace_tool("--kv-len", "64", "--write", "summary", "--out", out)
        self.assertIn("1 KV blocks of 128 keys; too few for cycles per block", run.stdout)


if __name__ == "__main__":
    unittest.main()
