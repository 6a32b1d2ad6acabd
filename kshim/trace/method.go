package trace

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// shows are the attributes that are neither a handle, nor a structure of the
// schema, nor a plain number: by name.
var shows = map[string]func(b, raw []byte) []byte{
	"object_id":    showObject,
	"type":         showQPType,
	"access_flags": showAccess,
	"resp_entries": showGIDs,

	"core_support": showHexNumber,
	"flags":        showHexNumber,
	"user_handle":  showHexNumber,
	"offset":       showHexNumber,
	"iova":         showHexNumber,
	"resp_iova":    showHexNumber,
	"resp_lkey":    showHexNumber,
	"resp_rkey":    showHexNumber,

	"uhw_in":  appendHex,
	"uhw_out": appendHex,
}

// appendIoctl shows the argument of RDMA_VERBS_IOCTL, and tells where it is
// answered.
func appendIoctl(b, arg []byte, mem *memory) ([]byte, answer) {
	var h abi.IoctlHdr
	if h.Parse(arg) != nil {
		return appendHex(b, arg), answer{}
	}
	m, name := abi.LookupMethod(h.ObjectID, h.MethodID), ""
	if m != nil {
		name = m.ShortName()
	} else {
		m = &abi.Entry{}
		name = fmt.Sprintf("%v.method(%d)", h.ObjectID, h.MethodID)
	}
	attrs := parseAttrs(arg, int(h.NumAttrs))
	var a answer
	if h.ObjectID == abi.ObjectDevice && h.MethodID == abi.MethodInvokeWrite {
		b, a = appendInvoke(append(append(b, name...), ' '), attrs, mem)
	} else {
		b, a = appendMethod(append(append(b, name...), " {"...), m, attrs, mem)
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
	var in, uhwIn abi.IoctlAttr
	var cmd abi.Command
	var core, drv span
	hasIn, named := false, false
	for _, x := range attrs {
		switch x.AttrID {
		case abi.AttrCoreIn:
			in, hasIn = x, true
		case abi.AttrCoreOut:
			core = span{x.Data, uint64(x.Len)}
		case abi.AttrWriteCmd:
			cmd, named = abi.Command(x.Data), x.Data>>32 == 0
		case abi.AttrUHWIn:
			uhwIn = x
		case abi.AttrUHWOut:
			drv = span{x.Data, uint64(x.Len)}
		}
	}
	name, e := "no command", &abi.Entry{}
	if named {
		name, e = lookup(cmd)
	}
	b = append(b, name...)
	if named && cmd == abi.CmdPostSend {
		core = span{}
	}
	if hasIn {
		b = appendInput(b, e.Request, in, mem)
	}
	if uhwIn.Len > 0 {
		b = appendInput(append(b, " uhw"...), abi.Layout{}, uhwIn, mem)
	}
	return b, answer{core: part{e.Response, core}, drv: part{e.DriverResponse, drv}}
}

func appendInput(b []byte, l abi.Layout, x abi.IoctlAttr, mem *memory) []byte {
	raw, ok := inputBytes(x, mem)
	if !ok {
		return append(b, " request not in announced memory"...)
	}
	return appendLayout(b, l, raw)
}

// inputBytes is an input attribute's value.
func inputBytes(x abi.IoctlAttr, mem *memory) ([]byte, bool) {
	if x.Len <= abi.AttrInlineMax {
		return le.AppendUint64(nil, x.Data)[:x.Len], true
	}
	return mem.read(x.Data, uint64(x.Len))
}

// appendMethod shows a method by the schema: its input, and the outputs to
// come.
func appendMethod(b []byte, m *abi.Entry, attrs []abi.IoctlAttr, mem *memory) ([]byte, answer) {
	var a answer
	first := true
	for i, x := range attrs {
		var spec *abi.Attr
		name := ""
		if at := m.AttrIndex(x.AttrID); at >= 0 {
			spec = &m.Attrs[at]
			name = strings.ToLower(m.ShortAttr(spec))
			if t := spec.Type; t == abi.AttrOut || t == abi.AttrHandleNew || t == abi.AttrFDNew {
				a.results = append(a.results, result{name, spec, abi.IoctlHdrSize + i*abi.IoctlAttrSize, span{x.Data, uint64(x.Len)}})
				continue
			}
		}
		if !first {
			b = append(b, ", "...)
		}
		first = false
		if spec == nil {
			b = strconv.AppendUint(append(b, "attr(0x"...), uint64(x.AttrID), 16)
			b = strconv.AppendUint(append(b, ")={len="...), uint64(x.Len), 10)
			b = append(appendHexNumber(append(b, ", data="...), x.Data), '}')
			continue
		}
		b = append(append(b, name...), '=')
		raw, there := inputBytes(x, mem)
		switch {
		case spec.Type.NamesObject():
			b = strconv.AppendInt(b, int64(x.Data), 10)
		case !there:
			b = append(b, "not in announced memory"...)
		default:
			b = appendAttr(b, name, spec, raw)
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
		b = append(append(b, r.name...), '=')
		if r.attr.Type.NamesObject() {
			var x abi.IoctlAttr
			_ = x.Parse(arg[r.at:])
			b = strconv.AppendInt(b, int64(x.Data), 10)
		} else if raw, ok := mem.read(r.span.addr, min(r.span.n, copyLimit)); ok {
			b = appendAttr(b, r.name, r.attr, raw)
		} else {
			b = append(b, "not in announced memory"...)
		}
		if i == len(results)-1 {
			b = append(b, '}')
		}
	}
	return b
}

func appendAttr(b []byte, name string, spec *abi.Attr, raw []byte) []byte {
	show := shows[name]
	switch {
	case show != nil:
		return show(b, raw)
	case spec.Layout.New != nil && len(raw) > 0:
		return append(b, appendLayout(nil, spec.Layout, raw)[1:]...)
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
