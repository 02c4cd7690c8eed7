# SPDX-License-Identifier: Apache-2.0
"""No parameter is accepted and ignored: each changes a result, is refused by name, or stands on the
list of docs/python.md of what has no effect.

The tables below are compared with the signatures, so that a new parameter without a row fails.
"""
import inspect
import re
import unittest

import deuce
import support
from support import HOST_BACKENDS, np


def setUpModule():
    support.needs_numpy()


class Acts:
    """With this value the result differs from that of the base call; `given` is added to both."""

    def __init__(self, value, **given):
        self.value, self.given = value, given


class Refused:
    """This value raises `kind` about `field`: it never reaches a computation, or reaches the
    library, which knows its range."""

    def __init__(self, value, kind=None, field=None, **given):
        self.value, self.field, self.given = value, field, given
        self.kind = kind or deuce.Unsupported


class Written:
    """The tensor is an output: it is filled, and returned when its function returns it."""

    def __init__(self, value, **given):
        self.value, self.given = value, given


class NoEffect:
    """Same bits with this value; must be listed in docs/python.md."""

    def __init__(self, value, **given):
        self.value, self.given = value, given


RNG_SEED = 11
EXTRAS = ("positional", "args", "keywords")


def tensors():
    rng = np.random.default_rng(RNG_SEED)

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def eight_bits(*shape):  # finite fp8 of either kind
        return rng.integers(0, 0x40, shape).astype(np.uint8)

    def ints(*numbers):
        return np.array(numbers, np.int32)

    return draw, eight_bits, ints


def deuce_tuning():
    """Rows for Deuce's own arguments that all functions share; what is refused here names the field
    that reached the library."""
    return {
        "split_kv_len": Refused(100, deuce.InvalidArgument),
        "score_slots": Refused(9, deuce.InvalidArgument),
        "row_replicas": Refused(3, deuce.InvalidArgument),
        "emulator_seed": Refused(7, deuce.InvalidArgument),
        "backend": Refused("no such backend", deuce.InvalidArgument),
        "stream": NoEffect(0),
    }


def flash_rows():
    draw, eight_bits, ints = tensors()
    base = dict(q=draw(2, 2, 4, 16), k_cache=draw(3, 20, 2, 16), v_cache=draw(3, 20, 2, 16),
                cache_seqlens=ints(20, 13))
    table = dict(block_table=ints(1, 0, 2, 1).reshape(2, 2), cache_seqlens=ints(30, 21))
    packed = dict(q=draw(4, 4, 16), max_seqlen_q=3, cu_seqlens_q=ints(0, 2, 4))
    fp8 = dict(k_cache=eight_bits(3, 20, 2, 16), v_cache=eight_bits(3, 20, 2, 16),
               kv_dtype="float8_e4m3fn")
    fp8_q = dict(q=eight_bits(2, 2, 4, 16), q_dtype="float8_e4m3fn")
    bf16_q = dict(q=draw(2, 2, 4, 16).astype(np.float16).view(np.uint16), q_dtype="bfloat16")
    rows = {
        "q": Acts(draw(2, 2, 4, 16)), "k_cache": Acts(draw(3, 20, 2, 16)),
        "v_cache": Acts(draw(3, 20, 2, 16)), "cache_seqlens": Acts(ints(19, 13)),
        "cache_batch_idx": Acts(ints(2, 0)), "cache_leftpad": Acts(ints(3, 1)),
        "block_table": Acts(ints(2, 0, 1, 1).reshape(2, 2), **table),
        "page_table": Acts(ints(2, 0, 1, 1).reshape(2, 2), cache_seqlens=ints(20, 20)),
        "cu_seqlens_q": Acts(ints(0, 1, 4), **packed),
        "max_seqlen_q": Refused(1, deuce.InvalidArgument, "cu_q_len", **packed),
        "q_descale": Acts(np.full((2, 2), 2, np.float32), **fp8_q),
        "k_descale": Acts(np.full((2, 2), 2, np.float32), **fp8),
        "v_descale": Acts(np.full((2, 2), 2, np.float32), **fp8),
        "softmax_scale": Acts(0.7), "causal": Acts(True), "window_size": Acts((3, -1)),
        "softcap": Acts(0.5), "num_splits": Refused(999, deuce.InvalidArgument),
        "sm_margin": Refused(-1, deuce.InvalidArgument),
        "pack_gqa": Refused(False), "scheduler_metadata": Refused(ints(1)),
        "return_softmax_lse": Acts(False),
        "out": Written(np.zeros((2, 2, 4, 16), np.float32)),
        "softmax_lse": Written(np.zeros((2, 4, 2), np.float32)),
        "sinks": Acts(draw(4)), "s_aux": Acts(draw(4)), "learnable_sink": Acts(draw(4)),
        "kv_layout": Acts("HND", k_cache=draw(3, 20, 20, 16), v_cache=draw(3, 20, 20, 16),
                          q=draw(2, 2, 20, 16)),
        "max_seqlen_k": Refused(5, deuce.InvalidArgument, "kv_len"),
        "k_token_scale": Acts(draw(3, 20, 2), **fp8), "v_token_scale": Acts(draw(3, 20, 2), **fp8),
        "q_dtype": Acts("float16", **bf16_q), "kv_dtype": Acts("float8_e5m2", **fp8),
        "workspace": Refused(np.zeros(0, np.uint8), deuce.Error, "bytes"),
        "rotary_interleaved": NoEffect(False),
        "k": Refused(draw(2, 1, 2, 16)), "v": Refused(draw(2, 1, 2, 16)),
        "qv": Refused(draw(2, 2, 4, 16)), "rotary_cos": Refused(draw(20, 8)),
        "rotary_sin": Refused(draw(20, 8)), "rotary_seqlens": Refused(ints(1, 1)),
        "cu_seqlens_k_new": Refused(ints(0, 1, 2)), "attention_chunk": Refused(8),
        "alibi_slopes": Refused(draw(4)),
        **deuce_tuning(),
    }
    return deuce.flash_attn_with_kvcache, dict(base, return_softmax_lse=True), rows


def varlen_rows():
    draw, eight_bits, ints = tensors()
    base = dict(q=draw(4, 4, 16), k=draw(3, 20, 2, 16), v=draw(3, 20, 2, 16), max_seqlen_q=3,
                cu_seqlens_q=ints(0, 2, 4), seqused_k=ints(20, 13), max_seqlen_k=40,
                return_softmax_lse=True)
    table = dict(seqused_k=ints(30, 21))
    fp8 = dict(k=eight_bits(3, 20, 2, 16), v=eight_bits(3, 20, 2, 16), kv_dtype="float8_e4m3fn")
    packed = dict(k=draw(30, 2, 16), v=draw(30, 2, 16), seqused_k=None,
                  cu_seqlens_k=ints(0, 12, 30))
    good, other = (ints(*ids).reshape(2, 2) for ids in ((1, 0, 2, 1), (2, 0, 1, 1)))
    rows = {
        "q": Acts(draw(4, 4, 16)), "k": Acts(draw(3, 20, 2, 16)), "v": Acts(draw(3, 20, 2, 16)),
        "max_seqlen_q": Refused(1, deuce.InvalidArgument, "cu_q_len"),
        "cu_seqlens_q": Acts(ints(0, 1, 4)), "seqused_k": Acts(ints(20, 12)),
        "max_seqlen_k": Refused(5, deuce.InvalidArgument, "kv_len"),
        "cu_seqlens_k": Acts(ints(0, 13, 30), **packed),
        "block_table": Acts(other, block_table=good, **table),
        "page_table": Acts(other, page_table=good, **table),
        "softmax_scale": Acts(0.7), "causal": Acts(True), "window_size": Acts([3, -1]),
        "softcap": Acts(0.5), "q_descale": Acts(
            np.full((2, 2), 2, np.float32), q=eight_bits(4, 4, 16), q_dtype="float8_e5m2"),
        "k_descale": Acts(np.full((2, 2), 2, np.float32), **fp8),
        "v_descale": Acts(np.full((2, 2), 2, np.float32), **fp8),
        "num_splits": Refused(999, deuce.InvalidArgument),
        "sm_margin": Refused(-1, deuce.InvalidArgument), "pack_gqa": Refused(False),
        "scheduler_metadata": Refused(ints(1)), "s_aux": Acts(draw(4)),
        "learnable_sink": Acts(draw(4)), "return_softmax_lse": Acts(False),
        "return_lse": Acts(True, return_softmax_lse=False),
        "out": Written(np.zeros((4, 4, 16), np.float32)),
        "softmax_lse": Written(np.zeros((4, 4), np.float32)),
        "kv_layout": Acts("HND", k=draw(3, 20, 20, 16), v=draw(3, 20, 20, 16), q=draw(4, 20, 16)),
        "q_dtype": Acts("float16", q=draw(4, 4, 16).astype(np.float16).view(np.uint16),
                        q_dtype="bfloat16"),
        "kv_dtype": Acts("float8_e5m2", **fp8),
        "workspace": Refused(np.zeros(0, np.uint8), deuce.Error, "bytes"),
        "deterministic": NoEffect(True),
        "seqused_q": Refused(ints(1, 1)), "q_v": Refused(draw(4)), "qv": Refused(draw(4)),
        "dropout_p": Refused(0.1), "attention_chunk": Refused(8), "alibi_slopes": Refused(draw(4)),
        "return_attn_probs": Refused(True), "fa_version": Refused(3), "cp_world_size": Refused(2),
        "cp_rank": Refused(1), "cp_tot_seqused_k": Refused(ints(1, 1)), "score_mod": Refused(abs),
        "mask_mod": Refused(abs), "block_sparse_tensors": Refused(draw(1)),
        "gather_kv_indices": Refused(ints(1)), "aux_tensors": Refused([draw(1)]),
        "aux_scalars": Refused([1.0]),
        **deuce_tuning(),
    }
    return deuce.flash_attn_varlen_func, base, rows


def trtllm_rows():
    draw, eight_bits, ints = tensors()
    base = dict(query=draw(4, 4, 16), kv_cache=(draw(3, 2, 16, 16), draw(3, 2, 16, 16)),
                workspace_buffer=None, block_tables=ints(1, 0, 2, 1).reshape(2, 2),
                seq_lens=ints(30, 21), max_seq_len=32, q_len_per_req=2, return_lse=True)
    packed = dict(cum_seq_lens_q=ints(0, 2, 4), max_q_len=3, q_len_per_req=1)
    fp8 = dict(kv_cache=(eight_bits(3, 2, 16, 16), eight_bits(3, 2, 16, 16)),
               kv_dtype="float8_e4m3fn")
    rows = {
        "query": Acts(draw(4, 4, 16)), "kv_cache": Acts((draw(3, 2, 16, 16), draw(3, 2, 16, 16))),
        "workspace_buffer": Refused(np.zeros(0, np.uint8), deuce.Error, "bytes"),
        "block_tables": Acts(ints(2, 0, 1, 1).reshape(2, 2)), "seq_lens": Acts(ints(29, 21)),
        "max_seq_len": Refused(5, deuce.InvalidArgument, "kv_len"), "bmm1_scale": Acts(0.3),
        "bmm2_scale": Acts(0.3), "window_left": Acts(3),
        "out": Written(np.zeros((4, 4, 16), np.float32)),
        "out_dtype": Acts("float16"), "lse": Written(np.zeros((4, 4), np.float32)),
        "sinks": Acts(draw(4)), "kv_layout": Acts("NHD", query=draw(4, 16, 16), kv_cache=(
            draw(3, 16, 16, 16), draw(3, 16, 16, 16))),
        "enable_pdl": Refused(True, deuce.Error, "flags"),
        "q_len_per_req": Refused(1, deuce.InvalidArgument, "query"),
        "max_q_len": Refused(1, deuce.InvalidArgument, "cu_q_len", **packed),
        "cum_seq_lens_q": Acts(ints(0, 1, 4), **packed), "return_lse": Acts(False),
        "q_dtype": Acts("float16", query=draw(4, 4, 16).astype(np.float16).view(np.uint16),
                        q_dtype="bfloat16"),
        "kv_dtype": Acts("float8_e5m2", **fp8),
        "o_sf_scale": Refused(1.0), "o_sf_vec_size": Refused(16), "o_scale": Refused(2.0),
        "mask": Refused(ints(1)), "skip_softmax_threshold_scale_factor": Refused(1.0),
        "kv_cache_sf": Refused(draw(1)), "uses_shared_paged_kv_idx": Refused(False),
        "bmm1_scale_log2": Refused(draw(1)), "multi_ctas_kv_counter_buffer": Refused(ints(1)),
        "enable_block_sparse_attention": Refused(True), "bf16q_fp8kv_transform_mode": Refused("x"),
        **deuce_tuning(), "backend": Refused("trtllm-gen", deuce.InvalidArgument),
    }
    return deuce.trtllm_batch_decode_with_kv_cache, base, rows


def single_rows():
    draw, eight_bits, _ = tensors()
    base = dict(q=draw(4, 16), k=draw(20, 2, 16), v=draw(20, 2, 16), return_lse=True)
    fp8 = dict(k=eight_bits(20, 2, 16), v=eight_bits(20, 2, 16), kv_dtype="float8_e4m3fn")
    rows = {
        "q": Acts(draw(4, 16)), "k": Acts(draw(20, 2, 16)), "v": Acts(draw(20, 2, 16)),
        "kv_layout": Acts("HND", q=draw(20, 16), k=draw(20, 20, 16), v=draw(20, 20, 16)),
        "q_scale": Acts(2.0, q=eight_bits(4, 16), q_dtype="float8_e4m3fn"),
        "k_scale": Acts(2.0, **fp8), "v_scale": Acts(2.0, **fp8), "window_left": Acts(3),
        "logits_soft_cap": Acts(0.5), "sm_scale": Acts(0.7), "return_lse": Acts(False),
        "out": Written(np.zeros((4, 16), np.float32)), "lse": Written(np.zeros(4, np.float32)),
        "q_dtype": Acts("float16", q=draw(4, 16).astype(np.float16).view(np.uint16),
                        q_dtype="bfloat16"),
        "kv_dtype": Acts("float8_e5m2", **fp8),
        "workspace": Refused(np.zeros(0, np.uint8), deuce.Error, "bytes"),
        "pos_encoding_mode": Refused("ROPE_LLAMA"), "rope_scale": Refused(1.0),
        "rope_theta": Refused(1e4), "use_tensor_cores": NoEffect(True),
        "backend": Refused("fa2", deuce.InvalidArgument), "stream": NoEffect(0),
    }
    return deuce.single_decode_with_kv_cache, base, rows


def wrapper_rows():
    """The wrapper's three methods as one function of all their parameters."""
    draw, eight_bits, ints = tensors()
    base = dict(float_workspace_buffer=None, indptr=ints(0, 2, 4), indices=ints(1, 0, 2, 1),
                last_page_len=ints(14, 5), num_qo_heads=4, num_kv_heads=2, head_dim=16,
                page_size=16, q_data_type="float32", q_len_per_req=2, q=draw(4, 4, 16),
                return_lse=True,
                paged_kv_cache=(draw(3, 16, 2, 16), draw(3, 16, 2, 16)))
    fp8 = dict(paged_kv_cache=(eight_bits(3, 16, 2, 16), eight_bits(3, 16, 2, 16)),
               kv_data_type="float8_e4m3fn")
    buffers = dict(use_cuda_graph=True, paged_kv_indptr_buffer=ints(0, 0, 0),
                   paged_kv_indices_buffer=ints(*[0] * 9), paged_kv_last_page_len_buffer=ints(0, 0))
    planned = deuce.InvalidArgument
    rows = {
        "float_workspace_buffer": Refused(np.zeros(0, np.uint8), deuce.Error, "bytes"),
        "kv_layout": Acts("HND", paged_kv_cache=(draw(3, 16, 16, 16), draw(3, 16, 16, 16)),
                          num_kv_heads=16, num_qo_heads=16, q=draw(4, 16, 16)),
        "use_cuda_graph": Refused(True, planned),
        "paged_kv_indptr_buffer": Written(ints(0, 0, 0), **buffers),
        "paged_kv_indices_buffer": Written(ints(*[0] * 9), **buffers),
        "paged_kv_last_page_len_buffer": Written(ints(0, 0), **buffers),
        "backend": Refused("fa3", planned), "indptr": Acts(ints(0, 1, 4)),
        "indices": Acts(ints(2, 0, 2, 1)), "last_page_len": Acts(ints(13, 5)),
        "num_qo_heads": Refused(8, planned), "num_kv_heads": Refused(1, planned),
        "head_dim": Refused(32, planned), "page_size": Refused(8, planned),
        "window_left": Acts(3), "window_right": Acts(-1), "logits_soft_cap": Acts(0.5),
        "q_data_type": Refused("float16", planned),
        "kv_data_type": Acts("float8_e5m2", **fp8), "o_data_type": Acts("float16"),
        "sm_scale": Acts(0.7), "block_tables": Acts(
            ints(2, 0, 2, 1).reshape(2, 2), seq_lens=ints(30, 21)),
        "seq_lens": Acts(ints(29, 21)), "fixed_split_size": Refused(3, planned),
        "row_replicas": Refused(3, planned), "emulator_seed": Refused(7, planned),
        "disable_split_kv": Refused(True, planned, "split_kv_len", fixed_split_size=8),
        "q_len_per_req": Refused(1, planned, "tokens in q"), "q": Acts(draw(4, 4, 16)),
        "paged_kv_cache": Acts((draw(3, 16, 2, 16), draw(3, 16, 2, 16))),
        "q_scale": Acts(2.0, q=eight_bits(4, 4, 16), q_data_type="float8_e4m3fn",
                        kv_data_type="float32"),
        "k_scale": Acts(2.0, **fp8), "v_scale": Acts(2.0, **fp8),
        "out": Written(np.zeros((4, 4, 16), np.float32)),
        "lse": Written(np.zeros((4, 4), np.float32)), "return_lse": Acts(False),
        "enable_pdl": Refused(True, deuce.Error, "flags"),
        "run_window_left": Refused(5, planned, "window_left"),
        "run_q_len_per_req": Refused(1, planned, "q_len_per_req"), "sinks": Acts(draw(4)),
        "jit_args": Refused([1]), "pos_encoding_mode": Refused("ROPE_LLAMA"),
        "rope_scale": Refused(1.0), "rope_theta": Refused(1e4), "data_type": Refused("float16"),
        "skip_softmax_threshold_scale_factor": Refused(1.0), "kv_cache_sf": Refused(draw(1)),
        "use_tensor_cores": NoEffect(True), "non_blocking": NoEffect(False),
        "int_workspace_buffer": NoEffect(ints(1)),
    }
    return call_wrapper, base, rows


def wrapper_parameters():
    """Names over all methods; run's window_left and q_len_per_req are told apart from plan's."""
    kind = deuce.BatchDecodeWithPagedKVCacheWrapper
    split = {method: [name for name in inspect.signature(getattr(kind, method)).parameters
                      if name != "self"] for method in ("__init__", "plan", "run",
                                                         "reset_workspace_buffer")}
    return split


def call_wrapper(backend="auto", **keywords):
    names = wrapper_parameters()
    again = {name[4:]: keywords.pop(name) for name in list(keywords) if name.startswith("run_")}
    take = {method: {name: keywords[name] for name in listed if name in keywords}
            for method, listed in names.items()}
    for name in ("window_left", "q_len_per_req"):
        take["run"].pop(name, None)
    wrapper = deuce.BatchDecodeWithPagedKVCacheWrapper(backend=backend, **take["__init__"])
    if "int_workspace_buffer" in keywords:
        wrapper.reset_workspace_buffer(**take["reset_workspace_buffer"])
    wrapper.plan(**take["plan"])
    return wrapper.run(**take["run"], **again)


def documented_without_effect():
    """{(function, parameter)} from the table of docs/python.md."""
    text = (support.ROOT / "docs" / "python.md").read_text()
    section = text.partition("## Without effect")[2].partition("\n## ")[0]
    return {tuple(cell.strip(" `") for cell in row.split("|")[1:3])
            for row in section.splitlines() if re.match(r"\| `", row)}


def bits(result):
    """What a call returned, comparable: shapes, dtypes and bytes."""
    parts = result if isinstance(result, tuple) else (result,)
    return [(part.shape, str(part.dtype), part.tobytes()) for part in parts]


class EveryParameter(support.Case):

    FUNCTIONS = (flash_rows, varlen_rows, trtllm_rows, single_rows, wrapper_rows)

    def test_every_parameter_of_every_signature_has_a_row(self):
        for make in self.FUNCTIONS:
            function, _, rows = make()
            if function is call_wrapper:
                split = wrapper_parameters()
                names = {name for listed in split.values() for name in listed}
                names |= {"run_window_left", "run_q_len_per_req"}
            else:
                names = set(inspect.signature(function).parameters)
            self.assertEqual(names - set(EXTRAS), set(rows), function.__name__)

    def test_every_row_holds(self):
        for make in self.FUNCTIONS:
            for backend in HOST_BACKENDS:
                function, base, rows = make()
                for name, row in rows.items():
                    with self.subTest(function=function.__name__, parameter=name, backend=backend):
                        self.check(function, {"backend": backend, **base, **row.given}, name, row)

    def check(self, function, base, name, row):
        with_value = {**base, name: row.value}
        if isinstance(row, Refused):
            field = row.field or name
            with self.assertRaises(row.kind) as caught:
                function(**with_value)
            self.assertEqual(caught.exception.field, field, str(caught.exception))
        elif isinstance(row, Acts):
            self.assertNotEqual(bits(function(**base)), bits(function(**with_value)), "no effect")
        elif isinstance(row, Written):
            before = row.value.tobytes()
            function(**with_value)
            self.assertNotEqual(before, row.value.tobytes(), "not written")
        else:
            self.assertEqual(bits(function(**base)), bits(function(**with_value)), "has an effect")

    def test_the_torch_operators_take_the_tuning_arguments_too(self):
        from deuce import _torch_ops
        for schema in (_torch_ops._FLASH, _torch_ops._TRTLLM):
            names = set(re.findall(r"(\w+)=", schema))
            # torch knows the stream, and an operator's tensors have its dtypes.
            self.assertEqual(set(deuce_tuning()) - {"stream"} - names, set())

    def test_what_has_no_effect_is_documented_and_nothing_else(self):
        listed = set()
        for make in self.FUNCTIONS:
            function, _, rows = make()
            owner = ("BatchDecodeWithPagedKVCacheWrapper" if function is call_wrapper
                     else function.__name__)
            listed |= {(owner, name) for name, row in rows.items() if isinstance(row, NoEffect)}
        listed |= {("get_scheduler_metadata", "everything it does not refuse")}
        self.assertEqual(listed, documented_without_effect())

    def test_scheduler_metadata_of_deuce_is_accepted_and_refuses_what_the_call_would(self):
        draw, _, ints = tensors()
        token = deuce.get_scheduler_metadata(2, 1, 20, 4, 2, 16, ints(20, 13), causal=True)
        self.assertIs(token, deuce.get_scheduler_metadata(9, 9, 9, 9, 9, 9, None))
        function, base, _ = flash_rows()
        self.assertEqual(bits(function(**base, backend="reference")),
                         bits(function(**base, backend="reference", scheduler_metadata=token)))
        for name, value in (("cu_seqlens_k_new", ints(1)), ("max_seqlen_k_new", 1),
                            ("attention_chunk", 4), ("pack_gqa", False)):
            self.assertRefused(
                deuce.Unsupported, name, deuce.get_scheduler_metadata, 2, 1, 20, 4, 2, 16, None,
                **{name: value})

    def test_positional_arguments_where_flash_attention_versions_disagree(self):
        function, base, _ = flash_rows()
        tensors_ = [base[name] for name in ("q", "k_cache", "v_cache")]
        with self.assertRaisesRegex(TypeError, "by name, such as cache_seqlens="):
            function(*tensors_, None, None, None)
        with self.assertRaisesRegex(TypeError, "block_table and page_table name the same"):
            function(**base, block_table=1, page_table=1)
        with self.assertRaisesRegex(TypeError, "s_aux and learnable_sink name the same"):
            function(**base, s_aux=1, learnable_sink=1)
        function, base, _ = varlen_rows()
        with self.assertRaisesRegex(TypeError, "by name, such as cu_seqlens_q="):
            function(base["q"], base["k"], base["v"], 1)
        wrapper = deuce.BatchDecodeWithPagedKVCacheWrapper(None)
        with self.assertRaisesRegex(TypeError, "by name, such as pos_encoding_mode="):
            wrapper.plan(*range(8))


if __name__ == "__main__":
    unittest.main()
