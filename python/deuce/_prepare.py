# SPDX-License-Identifier: Apache-2.0
"""Turns what an entry point understood into a plan and a filled C struct, once per shape.

Used by _decode on a miss of its cache. Everything visible on the host is checked here under the
caller's own argument names; the C library checks it again under its own.
"""
import ctypes

from . import _abi, _config, _output, _plan, _tensor, errors

# The tensors of deuce_decode_args, in the order decode() reads them.
TENSORS = ("q", "k", "v", "out", "lse", "kv_len", "kv_start", "cu_q_len", "cache_row",
           "block_table", "page_indptr", "page_indices", "last_page_len", "sink", "q_descale",
           "k_descale", "v_descale", "k_token_scale", "v_token_scale")
_INTEGERS = ("int32", "uint32")  # ids and lengths stay below 2^31, so both read the same
_FLOATS16_32 = ("float32", "float16", "bfloat16")
_HELD_IN = {"uint16": ("float16", "bfloat16"), "int16": ("float16", "bfloat16"),
            "uint8": ("float8_e4m3fn", "float8_e5m2"), "int8": ("float8_e4m3fn", "float8_e5m2")}


class Entry:
    """One entry point: what its arguments are called, and what they mean.

    names: C field -> Python argument, where they differ.
    build(options, layouts) -> Request, with layouts a dict from C field to Layout or None.
    needs: the tensors that may not be None.
    """

    def __init__(self, names, build, needs=("q", "k", "v")):
        self.names, self.build, self.needs = names, build, needs

    def name(self, field):
        return self.names.get(field, field)


class Request:
    """What an entry point made of its arguments.

    config: fields of deuce_decode_config that do not follow from the tensors.
    batch, q_len: requests and rows of each; capacity: key slots a request can have.
    cache_axes: where (page or cache row, slot, KV head) stand in the shape of K and V; None for the
        first means that all requests share one cache row.
    paged: the first of them counts pages.
    q_form, lse_form: names of the axes, see row_strides(); out has the axes of q.
    out_shape, lse_shape: shapes of the results.
    q_dtype, kv_dtype: what the caller called the dtypes, or None; out_dtype: wanted, or None.
    """

    q_dtype = kv_dtype = out_dtype = None

    def __init__(self, **facts):
        self.__dict__.update(facts)


def row_strides(form, strides, q_len):
    """Strides (request, row, head) of a tensor whose axes are named by `form`.

    b request, s row of a request, t token = request * q_len + row, h head. The axis of the head
    dimension is contiguous and has no letter.
    """
    by_axis = dict(zip(form, strides))
    if "t" in by_axis:
        return by_axis["t"] * q_len, by_axis["t"], by_axis["h"]
    return by_axis.get("b", 0), by_axis.get("s", 0), by_axis["h"]


def expect_rank(layout, rank, axes):
    """Refuse a tensor that has not `rank` axes, saying what they would be."""
    if len(layout.shape) != rank:
        raise errors.InvalidArgument(
            f"{layout.name} has shape {layout.shape}: {rank} axes {axes} are needed", layout.name,
            layout.shape)


def batch_of(entries, name):
    """Requests of a table of offsets with so many entries, the last of which is an end."""
    if entries < 1:
        raise errors.InvalidArgument(
            f"{name} is empty: one entry for each request and one for the end are needed", name)
    return entries - 1


def held_dtype(layout, wanted, parameter):
    """The float dtype a tensor holds: its own, or `wanted` when it is integers of that size."""
    if wanted is not None:
        wanted = _config.dtype_name(wanted, parameter)
        if layout.dtype != wanted and wanted not in _HELD_IN.get(layout.dtype, ()):
            raise errors.InvalidArgument(
                f"{parameter} is {wanted} but {layout.name} is {layout.dtype}", parameter, wanted)
        return wanted
    if layout.dtype not in _abi.DTYPES:
        raise errors.InvalidArgument(
            f"{layout.name} is {layout.dtype}: it must be {', '.join(_abi.DTYPES)}, or integers of "
            f"that size whose meaning {parameter} names", layout.name, layout.dtype)
    return layout.dtype


class Checker:
    """The checks that all entry points share, on the layouts of one call."""

    def __init__(self, entry, layouts):
        self.entry, self.layouts = entry, layouts

    def refuse(self, field, sentence, value=None):
        name = self.layouts[field].name
        raise errors.InvalidArgument(f"{name} {sentence}", name, value)

    def devices(self):
        home = self.layouts["q"].device
        for field, layout in self.layouts.items():
            if layout is not None and not _tensor.same_device(layout.device, home):
                self.refuse(
                    field, f"is on {_device_text(layout.device)} but {self.layouts['q'].name} is "
                    f"on {_device_text(home)}", layout.device)
        return home

    def contiguous_last(self, field):
        layout = self.layouts[field]
        if layout.shape[-1] > 1 and layout.strides[-1] != 1 and 0 not in layout.shape:
            self.refuse(field, f"has stride {layout.strides[-1]} in its last dimension: it must be "
                        "contiguous", layout.strides)

    def integers(self, field, shape):
        """A tensor of lengths, ids or offsets; None in `shape` stands for any extent."""
        layout = self.layouts[field]
        if layout is None:
            return
        if layout.dtype not in _INTEGERS:
            self.refuse(field, f"is {layout.dtype}: int32 is needed", layout.dtype)
        self.shape(field, shape)
        self.contiguous_last(field)

    def shape(self, field, shape):
        found = self.layouts[field].shape
        if len(found) != len(shape) or any(want not in (None, have)
                                           for want, have in zip(shape, found)):
            wanted = ", ".join("any" if extent is None else str(extent) for extent in shape)
            self.refuse(field, f"has shape {found}: ({wanted}{',' if len(shape) == 1 else ''}) is "
                        "needed", found)

    def floats(self, field, shape):
        """fp32 factors with any strides."""
        layout = self.layouts[field]
        if layout is None:
            return
        if layout.dtype != "float32":
            self.refuse(field, f"is {layout.dtype}: float32 is needed", layout.dtype)
        self.shape(field, shape)

    def result(self, field, shape, dtypes):
        layout = self.layouts[field]
        if layout is None:
            return
        if layout.dtype not in dtypes:
            self.refuse(field, f"is {layout.dtype}: {' or '.join(dtypes)} is needed", layout.dtype)
        if not layout.writable:
            self.refuse(field, "is read-only")
        self.shape(field, shape)


def _device_text(device):
    if device[0] == _abi.DEVICE_CPU:
        return "cpu"
    return "cuda" if device[1] < 0 else f"cuda:{device[1]}"


def check_tensors(checker, request):
    """Everything that means the same at every entry point; returns (query heads, KV heads)."""
    layouts, batch = checker.layouts, request.batch
    page, slot, head = request.cache_axes
    k, v = layouts["k"], layouts["v"]
    pages = "pages" if request.paged else "rows"
    for axis, what in ((page, pages), (slot, "slots"), (head, "heads")):
        if axis is not None and k.shape[axis] != v.shape[axis]:
            checker.refuse("v", f"has shape {v.shape}: as many {what} as {k.name} are "
                           f"needed, which has shape {k.shape}", v.shape)
    if layouts["q"].shape[-1] != k.shape[-1]:
        checker.refuse("q", f"has head dim {layouts['q'].shape[-1]} but {k.name} has "
                       f"{k.shape[-1]}: they must be equal", layouts["q"].shape)
    for field in ("q", "k", "v"):
        checker.contiguous_last(field)
    kv_heads, q_heads = k.shape[head], layouts["q"].shape[request.q_form.index("h")]
    for field in ("kv_len", "kv_start", "cache_row", "last_page_len"):
        checker.integers(field, (batch,))
    for field in ("cu_q_len", "page_indptr"):
        checker.integers(field, (batch + 1,))
    checker.integers("page_indices", (None,))
    checker.integers("block_table", (batch, None))
    for field in ("q_descale", "k_descale", "v_descale"):
        checker.floats(field, (batch, kv_heads))
    for field, cache in (("k_token_scale", k), ("v_token_scale", v)):
        checker.floats(field, cache.shape[:-1])
    if layouts["sink"] is not None:
        if layouts["sink"].dtype not in _FLOATS16_32:
            checker.refuse(
                "sink", f"is {layouts['sink'].dtype}: {', '.join(_FLOATS16_32)} is needed")
        checker.shape("sink", (q_heads,))
        checker.contiguous_last("sink")
    return q_heads, kv_heads


def fill_config(checker, request, heads, device, kept_workspace):
    """The config of a request, and the dtype name of its output."""
    layouts, name = checker.layouts, checker.entry.name
    q_dtype = held_dtype(layouts["q"], request.q_dtype, name("q_dtype"))
    kv_dtype = held_dtype(layouts["k"], request.kv_dtype, name("kv_dtype"))
    v_dtype = held_dtype(layouts["v"], request.kv_dtype, name("kv_dtype"))
    if v_dtype != kv_dtype:
        checker.refuse(
            "v", f"is {v_dtype} but {layouts['k'].name} is {kv_dtype}: K and V have one dtype")
    out_dtype = request.out_dtype or ("bfloat16" if q_dtype.startswith("float8") else q_dtype)
    out = layouts["out"]
    integers = q_dtype != layouts["q"].dtype
    if out is not None and request.out_dtype is None and out.dtype in _FLOATS16_32:
        out_dtype = out.dtype
    held = (out_dtype, "uint16", "int16") if integers and out_dtype != "float32" else (out_dtype,)
    if not request.out_dtype and not integers:
        held = _FLOATS16_32
    checker.result("out", request.out_shape, held)
    checker.result("lse", request.lse_shape, ("float32",))
    sink = layouts["sink"]
    config = _config.make_config(
        num_q_heads=heads[0], num_kv_heads=heads[1], head_dim_qk=layouts["q"].shape[-1],
        head_dim_v=layouts["v"].shape[-1], q_dtype=q_dtype, kv_dtype=kv_dtype, out_dtype=out_dtype,
        sink_dtype=0 if sink is None else sink.dtype,
        page_size=layouts["k"].shape[request.cache_axes[1]] if request.paged else 0,
        max_batch=_config.bound(request.batch), max_q_len=max(request.q_len, 1),
        device_type=device[0], device_id=device[1] if device[0] == _abi.DEVICE_CUDA else -1,
        **request.config)
    if kept_workspace:
        config.flags |= _abi.FLAG_WORKSPACE_KEPT
    return config, out_dtype, integers


def fill_args(args, layouts, request):
    """Sizes and strides of the call; pointers are set at every call."""
    page, slot, head = request.cache_axes
    k, v = layouts["k"], layouts["v"]
    args.batch, args.q_len = request.batch, request.q_len
    args.num_pages = 1 if page is None else _config.integer(k.shape[page], "num_pages")
    if not request.paged:
        args.cache_slots = k.shape[slot]
    args.q_stride[:] = row_strides(request.q_form, layouts["q"].strides, request.q_len)
    for field, shape, form in (("out", request.out_shape, request.q_form),
                               ("lse", request.lse_shape, request.lse_form)):
        layout = layouts[field]
        strides = _tensor.dense_strides(shape) if layout is None else layout.strides
        getattr(args, field + "_stride")[:] = row_strides(form, strides, request.q_len)
    for field, layout in (("k", k), ("v", v), ("k_token_scale", layouts["k_token_scale"]),
                          ("v_token_scale", layouts["v_token_scale"])):
        if layout is not None:
            getattr(args, field + "_stride")[:] = [0 if axis is None else layout.strides[axis]
                                                   for axis in (page, slot, head)]
    for field in ("q_descale", "k_descale", "v_descale"):
        if layouts[field] is not None:
            getattr(args, field + "_stride")[:] = layouts[field].strides
    table = layouts["block_table"]
    if table is not None:
        args.block_table_columns = _config.integer(table.shape[1], "block_table_columns")
        args.block_table_stride = table.strides[0]


class Kept:
    """A prepared call: plan, filled struct and what is needed to run it again."""

    __slots__ = ("plan", "args", "reference", "fields", "new_out", "new_lse", "capacity", "device",
                 "workspace", "ends")


def ends_of(entry, layouts, request):
    """What the C functions cannot see: (field, its name, index of its last entry, largest value of
    it, whether it must be that) of the host tables whose last entry counts rows or ids."""
    ends = []
    if layouts["cu_q_len"] is not None:
        ends.append(("cu_q_len", entry.name("cu_q_len"), request.batch, layouts["q"].shape[0], True))
    if layouts["page_indptr"] is not None and layouts["page_indices"] is not None:
        ends.append(("page_indptr", entry.name("page_indptr"), request.batch,
                     layouts["page_indices"].shape[0], False))
    return ends


def prepare(entry, options, tensors, keys, want_lse, own_workspace):
    """The Kept call for these tensors, or the exception that says why there is none."""
    for field, tensor in zip(TENSORS, tensors):
        if tensor is None and field in entry.needs:
            name = entry.name(field)
            raise errors.InvalidArgument(f"{name} is None: a tensor is needed", name)
    layouts = {field: None if tensor is None else _tensor.describe(tensor, key, entry.name(field))
               for field, tensor, key in zip(TENSORS, tensors, keys)}
    checker = Checker(entry, layouts)
    device = checker.devices()
    request = entry.build(options, layouts)
    heads = check_tensors(checker, request)
    config, out_dtype, integers = fill_config(checker, request, heads, device, own_workspace)

    kept = Kept()
    kept.device, kept.capacity = device, request.capacity
    kept.plan = _plan.plan_for(config)
    kept.args = _abi.Args()
    fill_args(kept.args, layouts, request)
    kept.reference = ctypes.byref(kept.args)
    kept.fields = [field for field in TENSORS if layouts[field] is not None]
    q = tensors[0]
    kept.new_out = layouts["out"] or _output.allocator(q, request.out_shape, out_dtype,
                                                       entry.name("out"), integers)
    kept.new_lse = layouts["lse"] or (want_lse and _output.allocator(
        q, request.lse_shape, "float32", entry.name("lse"), False))
    on_host = device[0] == _abi.DEVICE_CPU
    kept.workspace = _plan.host_workspace(kept.plan) if own_workspace and on_host else None
    kept.ends = ends_of(entry, layouts, request) if on_host else ()
    return kept
