package trace

import (
	"strconv"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// attributeKind is how an attribute of an ioctl is carried and shown.
type attributeKind uint8

const (
	attrIn     attributeKind = iota // in the attribute, or, beyond 8 bytes, where it points
	attrHandle                      // a handle, in the attribute
	attrNew                         // a new handle or descriptor, which comes back in the attribute
	attrOut                         // at the address in the attribute
)

// attribute describes one of a method's.
type attribute struct {
	name string
	kind attributeKind
	show func(b, raw []byte) []byte // nil: a number of up to 8 bytes, else hexadecimal
}

// method describes what a method of RDMA_VERBS_IOCTL takes; the attributes' names
// are the kernel's without what they begin with.
type method struct {
	name  string
	attrs map[abi.AttrID]attribute
}

type methodKey struct {
	object abi.ObjectID
	id     abi.MethodID
}

// methods are those of ib_user_ioctl_cmds.h that a device like rdma_rxe may see.
// INVOKE_WRITE is not among them: it is shown as the command it carries.
var methods = map[methodKey]method{
	{abi.ObjectDevice, abi.MethodInfoHandles}: {"INFO_HANDLES", map[abi.AttrID]attribute{
		0: {"object_id", attrIn, showObject}, 1: {"total_handles", attrOut, nil}, 2: {"handles_list", attrOut, nil}}},
	{abi.ObjectDevice, abi.MethodQueryPort}: {"QUERY_PORT", map[abi.AttrID]attribute{
		0: {"port_num", attrIn, nil}, 1: {"resp", attrOut, shown(of[abi.QueryPortResp](abi.QueryPortRespSize))}}},
	{abi.ObjectDevice, abi.MethodGetContext}: {"GET_CONTEXT", map[abi.AttrID]attribute{
		0: {"num_comp_vectors", attrOut, nil}, 1: {"core_support", attrOut, showHexNumber}}},
	{abi.ObjectDevice, abi.MethodQueryContext}: {"QUERY_CONTEXT", map[abi.AttrID]attribute{
		0: {"num_comp_vectors", attrOut, nil}, 1: {"core_support", attrOut, showHexNumber}}},
	{abi.ObjectDevice, abi.MethodQueryGIDTable}: {"QUERY_GID_TABLE", map[abi.AttrID]attribute{
		abi.AttrQueryGIDTableEntrySize: {"entry_size", attrIn, nil}, abi.AttrQueryGIDTableFlags: {"flags", attrIn, showHexNumber},
		abi.AttrQueryGIDTableRespEntries: {"resp_entries", attrOut, showGIDs}, abi.AttrQueryGIDTableRespNumEntries: {"resp_num_entries", attrOut, nil}}},
	{abi.ObjectDevice, abi.MethodQueryGIDEntry}: {"QUERY_GID_ENTRY", map[abi.AttrID]attribute{
		abi.AttrQueryGIDEntryPort: {"port", attrIn, nil}, abi.AttrQueryGIDEntryGIDIndex: {"gid_index", attrIn, nil},
		abi.AttrQueryGIDEntryFlags: {"flags", attrIn, showHexNumber}, abi.AttrQueryGIDEntryRespEntry: {"resp_entry", attrOut, shown(of[abi.GIDEntry](abi.GIDEntrySize))}}},
	{abi.ObjectPD, abi.MethodPDDestroy}: {"PD_DESTROY", map[abi.AttrID]attribute{0: {"handle", attrHandle, nil}}},
	{abi.ObjectAH, abi.MethodAHDestroy}: {"AH_DESTROY", map[abi.AttrID]attribute{0: {"handle", attrHandle, nil}}},
	{abi.ObjectMW, 0}:                   {"MW_DESTROY", map[abi.AttrID]attribute{0: {"handle", attrHandle, nil}}},
	{abi.ObjectXRCD, 0}:                 {"XRCD_DESTROY", map[abi.AttrID]attribute{0: {"handle", attrHandle, nil}}},
	{abi.ObjectCQ, abi.MethodCQCreate}: {"CQ_CREATE", map[abi.AttrID]attribute{
		0: {"handle", attrNew, nil}, 1: {"cqe", attrIn, nil}, 2: {"user_handle", attrIn, showHexNumber}, 3: {"comp_channel", attrHandle, nil},
		4: {"comp_vector", attrIn, nil}, 5: {"flags", attrIn, showHexNumber}, 6: {"resp_cqe", attrOut, nil}, 7: {"event_fd", attrHandle, nil}}},
	{abi.ObjectCQ, abi.MethodCQDestroy}: {"CQ_DESTROY", map[abi.AttrID]attribute{
		0: {"handle", attrHandle, nil}, 1: {"resp", attrOut, shown(of[abi.DestroyCQResp](abi.DestroyCQRespSize))}}},
	{abi.ObjectQP, abi.MethodQPCreate}: {"QP_CREATE", map[abi.AttrID]attribute{
		0: {"handle", attrNew, nil}, 1: {"xrcd_handle", attrHandle, nil}, 2: {"pd_handle", attrHandle, nil}, 3: {"srq_handle", attrHandle, nil},
		4: {"send_cq_handle", attrHandle, nil}, 5: {"recv_cq_handle", attrHandle, nil}, 6: {"ind_table_handle", attrHandle, nil},
		7: {"user_handle", attrIn, showHexNumber}, 8: {"cap", attrIn, shown(of[abi.QPCap](abi.QPCapSize))}, 9: {"type", attrIn, showQPType}, 10: {"flags", attrIn, showHexNumber},
		11: {"source_qpn", attrIn, nil}, 12: {"event_fd", attrHandle, nil}, 13: {"resp_cap", attrOut, shown(of[abi.QPCap](abi.QPCapSize))}, 14: {"resp_qp_num", attrOut, nil}}},
	{abi.ObjectQP, abi.MethodQPDestroy}: {"QP_DESTROY", map[abi.AttrID]attribute{
		0: {"handle", attrHandle, nil}, 1: {"resp", attrOut, shown(of[abi.DestroyQPResp](abi.DestroyQPRespSize))}}},
	{abi.ObjectSRQ, abi.MethodSRQCreate}: {"SRQ_CREATE", map[abi.AttrID]attribute{
		0: {"handle", attrNew, nil}, 1: {"pd_handle", attrHandle, nil}, 2: {"xrcd_handle", attrHandle, nil}, 3: {"cq_handle", attrHandle, nil},
		4: {"user_handle", attrIn, showHexNumber}, 5: {"max_wr", attrIn, nil}, 6: {"max_sge", attrIn, nil}, 7: {"limit", attrIn, nil}, 8: {"max_num_tags", attrIn, nil},
		9: {"type", attrIn, nil}, 10: {"event_fd", attrHandle, nil}, 11: {"resp_max_wr", attrOut, nil}, 12: {"resp_max_sge", attrOut, nil}, 13: {"resp_srq_num", attrOut, nil}}},
	{abi.ObjectSRQ, abi.MethodSRQDestroy}: {"SRQ_DESTROY", map[abi.AttrID]attribute{
		0: {"handle", attrHandle, nil}, 1: {"resp", attrOut, nil}}},
	{abi.ObjectMR, abi.MethodMRDestroy}: {"MR_DESTROY", map[abi.AttrID]attribute{0: {"handle", attrHandle, nil}}},
	{abi.ObjectMR, abi.MethodAdviseMR}: {"ADVISE_MR", map[abi.AttrID]attribute{
		0: {"pd_handle", attrHandle, nil}, 1: {"advice", attrIn, nil}, 2: {"flags", attrIn, showHexNumber}, 3: {"sge_list", attrIn, nil}}},
	{abi.ObjectMR, abi.MethodQueryMR}: {"QUERY_MR", map[abi.AttrID]attribute{
		0: {"handle", attrHandle, nil}, 1: {"resp_lkey", attrOut, showHexNumber}, 2: {"resp_rkey", attrOut, showHexNumber}, 3: {"resp_length", attrOut, nil}, 4: {"resp_iova", attrOut, showHexNumber}}},
	{abi.ObjectMR, abi.MethodRegDMABufMR}: {"REG_DMABUF_MR", map[abi.AttrID]attribute{
		0: {"handle", attrNew, nil}, 1: {"pd_handle", attrHandle, nil}, 2: {"offset", attrIn, showHexNumber}, 3: {"length", attrIn, nil}, 4: {"iova", attrIn, showHexNumber},
		5: {"fd", attrIn, nil}, 6: {"access_flags", attrIn, showAccess}, 7: {"resp_lkey", attrOut, showHexNumber}, 8: {"resp_rkey", attrOut, showHexNumber}}},
	{abi.ObjectAsyncEvent, abi.MethodAsyncEventAlloc}: {"ASYNC_EVENT_ALLOC", map[abi.AttrID]attribute{0: {"fd_handle", attrNew, nil}}},
}

// driverAttrs are the driver's part of any method.
var driverAttrs = map[abi.AttrID]attribute{
	abi.AttrUHWIn:  {"uhw_in", attrIn, appendHex},
	abi.AttrUHWOut: {"uhw_out", attrOut, appendHex},
}

// invokeAttrs are those of INVOKE_WRITE.
type invokeAttrs struct {
	in, uhwIn abi.IoctlAttr
	cmd       abi.Command
	hasIn     bool
	hasUHWIn  bool
}

// appendIoctl shows the argument of RDMA_VERBS_IOCTL, and tells where it is
// answered.
func appendIoctl(b, arg []byte, mem *memory) ([]byte, answer) {
	var h abi.IoctlHdr
	if h.Parse(arg) != nil {
		return appendHex(b, arg), answer{}
	}
	key := methodKey{h.ObjectID, h.MethodID}
	attrs := parseAttrs(arg, int(h.NumAttrs))
	var a answer
	if key == (methodKey{abi.ObjectDevice, abi.MethodInvokeWrite}) {
		b, a = appendInvoke(append(b, "INVOKE_WRITE "...), attrs, mem)
	} else {
		b, a = appendMethod(b, key, attrs, mem)
	}
	if h.DriverID != abi.DriverRXE {
		b = append(append(b, " driver_id="...), h.DriverID.String()...)
	}
	if int(h.Length) != abi.IoctlHdrSize+int(h.NumAttrs)*abi.IoctlAttrSize || len(attrs) != int(h.NumAttrs) {
		b = strconv.AppendUint(append(b, " length="...), uint64(h.Length), 10)
		b = strconv.AppendUint(append(b, " num_attrs="...), uint64(h.NumAttrs), 10)
	}
	if h.Reserved1 != 0 || h.Reserved2 != 0 {
		b = append(b, " reserved fields are not zero"...)
	}
	return b, a
}

// parseAttrs gives as many attributes as are there.
func parseAttrs(arg []byte, n int) []abi.IoctlAttr {
	n = min(n, (len(arg)-abi.IoctlHdrSize)/abi.IoctlAttrSize)
	attrs := make([]abi.IoctlAttr, n)
	for i := range attrs {
		_ = attrs[i].Parse(arg[abi.IoctlHdrSize+i*abi.IoctlAttrSize:])
	}
	return attrs
}

// appendInvoke shows INVOKE_WRITE as the command it carries.
func appendInvoke(b []byte, attrs []abi.IoctlAttr, mem *memory) ([]byte, answer) {
	var v invokeAttrs
	var a answer
	named := false
	for _, x := range attrs {
		switch x.AttrID {
		case abi.AttrCoreIn:
			v.in, v.hasIn = x, true
		case abi.AttrCoreOut:
			a.core = span{x.Data, uint64(x.Len)}
		case abi.AttrWriteCmd:
			v.cmd, named = abi.Command(x.Data), x.Data>>32 == 0
		case abi.AttrUHWIn:
			v.uhwIn, v.hasUHWIn = x, true
		case abi.AttrUHWOut:
			a.drv = span{x.Data, uint64(x.Len)}
		}
	}
	name := "no command"
	if named {
		name, a.desc = lookup(v.cmd)
	}
	b = append(b, name...)
	if v.cmd == abi.CmdPostSend && named {
		a.core = span{}
	}
	if v.hasIn {
		b = appendInput(b, a.desc.req, v.in, mem)
	}
	if v.hasUHWIn && v.uhwIn.Len > 0 {
		b = appendInput(append(b, " uhw"...), layout{}, v.uhwIn, mem)
	}
	return b, a
}

func appendInput(b []byte, l layout, x abi.IoctlAttr, mem *memory) []byte {
	raw, ok := inputBytes(x, mem)
	if !ok {
		return append(b, " request not in announced memory"...)
	}
	return l.append(b, raw)
}

// inputBytes is an input attribute's value.
func inputBytes(x abi.IoctlAttr, mem *memory) ([]byte, bool) {
	if x.Len <= abi.AttrInlineMax {
		return le.AppendUint64(nil, x.Data)[:x.Len], true
	}
	return mem.read(x.Data, uint64(x.Len))
}

// appendMethod shows a method by the table: its input, and what comes out later.
func appendMethod(b []byte, key methodKey, attrs []abi.IoctlAttr, mem *memory) ([]byte, answer) {
	m, known := methods[key]
	if !known {
		m.name = key.object.String() + ".method(" + strconv.Itoa(int(key.id)) + ")"
	}
	b = append(append(b, m.name...), " {"...)
	var a answer
	first := true
	for i, x := range attrs {
		desc, ok := m.attrs[x.AttrID]
		if !ok {
			desc, ok = driverAttrs[x.AttrID]
		}
		if ok && (desc.kind == attrOut || desc.kind == attrNew) {
			a.results = append(a.results, result{desc, abi.IoctlHdrSize + i*abi.IoctlAttrSize, span{x.Data, uint64(x.Len)}})
			continue
		}
		if !first {
			b = append(b, ", "...)
		}
		first = false
		if !ok {
			b = strconv.AppendUint(append(b, "attr(0x"...), uint64(x.AttrID), 16)
			b = strconv.AppendUint(append(b, ")={len="...), uint64(x.Len), 10)
			b = append(appendHexNumber(append(b, ", data="...), x.Data), '}')
			continue
		}
		b = append(append(b, desc.name...), '=')
		raw, there := inputBytes(x, mem)
		switch {
		case desc.kind == attrHandle:
			b = strconv.AppendInt(b, int64(x.Data), 10)
		case !there:
			b = append(b, "not in announced memory"...)
		default:
			b = desc.append(b, raw)
		}
	}
	return append(b, '}'), a
}

// appendResults shows an ioctl's output.
func appendResults(b []byte, results []result, mem *memory, arg []byte) []byte {
	for i, r := range results {
		if i == 0 {
			b = append(b, " {"...)
		} else {
			b = append(b, ", "...)
		}
		b = append(append(b, r.attr.name...), '=')
		if r.attr.kind == attrNew {
			var x abi.IoctlAttr
			_ = x.Parse(arg[r.at:])
			b = strconv.AppendInt(b, int64(x.Data), 10)
		} else if raw, ok := mem.read(r.span.addr, min(r.span.n, copyLimit)); ok {
			b = r.attr.append(b, raw)
		} else {
			b = append(b, "not in announced memory"...)
		}
		if i == len(results)-1 {
			b = append(b, '}')
		}
	}
	return b
}

func (a attribute) append(b, raw []byte) []byte {
	switch {
	case a.show != nil:
		return a.show(b, raw)
	case len(raw) <= 8:
		return strconv.AppendUint(b, number(raw), 10)
	}
	return appendHex(b, raw)
}

// number is a little-endian number of up to 8 bytes.
func number(raw []byte) uint64 {
	var v [8]byte
	copy(v[:], raw)
	return le.Uint64(v[:])
}

func showHexNumber(b, raw []byte) []byte {
	if len(raw) > 8 {
		return appendHex(b, raw)
	}
	return appendHexNumber(b, number(raw))
}

func showObject(b, raw []byte) []byte {
	return append(b, abi.ObjectID(number(raw)).String()...)
}

func showQPType(b, raw []byte) []byte { return append(b, abi.QPType(number(raw)).String()...) }

func showAccess(b, raw []byte) []byte {
	return append(b, abi.AccessFlags(number(raw)).String()...)
}

// shown shows a structure.
func shown(l layout) func(b, raw []byte) []byte {
	return func(b, raw []byte) []byte {
		if text := l.append(nil, raw); len(text) > 0 {
			return append(b, text[1:]...)
		}
		return appendHex(b, raw)
	}
}

// showGIDs shows the entries of a GID table that are not empty, if the entries
// are as large as this kernel's.
func showGIDs(b, raw []byte) []byte {
	if len(raw)%abi.GIDEntrySize != 0 {
		return appendHex(b, raw)
	}
	b = append(b, '[')
	for n := 0; len(raw) > 0; raw = raw[abi.GIDEntrySize:] {
		var e abi.GIDEntry
		if e.Parse(raw) != nil || allZero(raw[:abi.GIDEntrySize]) {
			continue
		}
		if n > 0 {
			b = append(b, ", "...)
		}
		n++
		b = appendStruct(b, e, nil)
	}
	return append(b, ']')
}
