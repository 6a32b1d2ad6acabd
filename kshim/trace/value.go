package trace

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// manyFields is the size from which a structure shows only the fields that say
// something.
const manyFields = 20

// hexLimit bounds how many bytes are shown of memory that cannot be decoded.
const hexLimit = 64

// inHex are the fields shown in hexadecimal, by the kernel's name; inDecimal
// the exceptions among those of 64 bits, which are else addresses and opaque
// values.
var (
	inHex = map[string]bool{
		"lkey": true, "rkey": true, "qkey": true, "flow_label": true, "device_cap_flags": true,
		"port_cap_flags": true, "vendor_id": true, "rq_psn": true, "sq_psn": true, "attr_mod": true,
	}
	inDecimal = map[string]bool{"length": true}
)

// kinds are the fields that hold a kind in a number of another type.
var kinds = map[string]func(uint64) string{
	"qp_state":       func(v uint64) string { return abi.QPState(v).String() },
	"cur_qp_state":   func(v uint64) string { return abi.QPState(v).String() },
	"path_mtu":       func(v uint64) string { return abi.MTU(v).String() },
	"path_mig_state": func(v uint64) string { return abi.MigState(v).String() },
}

// appendStruct shows a structure of package abi: {pd_handle=1, …}. show tells
// whether a field is worth it; nil shows all.
func appendStruct(b []byte, s any, show func(name string) bool) []byte {
	v := reflect.Indirect(reflect.ValueOf(s))
	t := v.Type()
	b = append(b, '{')
	first := true
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("c")
		f := v.Field(i)
		switch {
		case name == "response": // shown where the call's answer is
			continue
		case (name == "reserved" || name == "pad") && f.IsZero():
			continue
		case show != nil && !show(name):
			continue
		case show == nil && t.NumField() >= manyFields && f.IsZero() && !namedZero(f):
			continue
		}
		if !first {
			b = append(b, ", "...)
		}
		first = false
		b = append(append(b, name...), '=')
		b = appendValue(b, name, f)
	}
	return append(b, '}')
}

// namedZero holds for a state or a kind whose 0 has a name.
func namedZero(f reflect.Value) bool {
	s, ok := f.Interface().(fmt.Stringer)
	if !ok {
		return false
	}
	text := s.String()
	return text != "0" && !strings.HasSuffix(text, ")")
}

func appendValue(b []byte, name string, f reflect.Value) []byte {
	switch x := f.Interface().(type) {
	case [16]byte:
		return append(b, netip.AddrFrom16(x).String()...)
	case fmt.Stringer:
		return append(b, x.String()...)
	case abi.SockaddrStorage:
		return appendSockaddr(b, &x)
	case abi.SockaddrIn6:
		all, _ := x.Storage()
		return appendSockaddr(b, &all)
	case abi.UCMConnParam:
		return appendConnParam(b, &x)
	}
	if kind := kinds[name]; kind != nil && f.CanUint() {
		return append(b, kind(f.Uint())...)
	}
	switch f.Kind() {
	case reflect.Struct:
		return appendStruct(b, f.Interface(), nil)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return strconv.AppendInt(b, f.Int(), 10)
	case reflect.Uint64:
		if !inDecimal[name] {
			return appendHexNumber(b, f.Uint())
		}
		return strconv.AppendUint(b, f.Uint(), 10)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint:
		if inHex[name] {
			return appendHexNumber(b, f.Uint())
		}
		return strconv.AppendUint(b, f.Uint(), 10)
	case reflect.Array, reflect.Slice:
		if f.Type().Elem().Kind() == reflect.Uint8 {
			raw := make([]byte, f.Len())
			reflect.Copy(reflect.ValueOf(raw), f)
			if raw = bytes.TrimRight(raw, "\x00"); len(raw) == 0 {
				return append(b, '0')
			}
			return appendHex(b, raw)
		}
		b = append(b, '[')
		for i := range f.Len() {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendValue(b, name, f.Index(i))
		}
		return append(b, ']')
	}
	return fmt.Appendf(b, "%v", f.Interface())
}

func appendHexNumber(b []byte, v uint64) []byte {
	if v == 0 {
		return append(b, '0')
	}
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}

// appendHex shows bytes, the first of them if there are many.
func appendHex(b, raw []byte) []byte {
	cut := len(raw) > hexLimit
	if cut {
		raw = raw[:hexLimit]
	}
	if len(raw) == 0 {
		return append(b, "(empty)"...)
	}
	b = hex.AppendEncode(append(b, "0x"...), raw)
	if cut {
		b = append(b, "..."...)
	}
	return b
}

// appendLayout shows raw as the structure, if it is known, and what is behind
// it, unless it is zero, in hexadecimal.
func appendLayout(b []byte, l abi.Layout, raw []byte) []byte {
	if l.New == nil {
		if len(raw) == 0 {
			return b
		}
		return appendHex(append(b, ' '), raw)
	}
	s := l.New()
	if s.Parse(raw) != nil {
		return appendHex(append(b, " short "...), raw)
	}
	b = append(b, ' ')
	switch s := s.(type) {
	case *abi.UCMEventResp:
		b = appendStruct(b, ucmEvent{s.UID, s.ID, s.Event, s.Status, s.Conn(), s.ECE}, nil)
	default:
		b = appendStruct(b, s, showFor(s))
	}
	if rest := raw[min(l.Size, len(raw)):]; !allZero(rest) {
		b = appendHex(append(b, " + "...), rest)
	}
	return b
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// modifyBits are the bits of MODIFY_QP's mask without which a field is ignored.
var modifyBits = map[string]abi.QPAttrMask{
	"dest": abi.QPMaskAV, "alt_dest": abi.QPMaskAltPath, "alt_pkey_index": abi.QPMaskAltPath,
	"alt_port_num": abi.QPMaskAltPath, "alt_timeout": abi.QPMaskAltPath,
	"qkey": abi.QPMaskQKey, "rq_psn": abi.QPMaskRQPSN, "sq_psn": abi.QPMaskSQPSN, "dest_qp_num": abi.QPMaskDestQPN,
	"qp_access_flags": abi.QPMaskAccessFlags, "pkey_index": abi.QPMaskPkeyIndex,
	"qp_state": abi.QPMaskState, "cur_qp_state": abi.QPMaskCurState, "path_mtu": abi.QPMaskPathMTU,
	"path_mig_state": abi.QPMaskPathMigState, "en_sqd_async_notify": abi.QPMaskEnSQDAsyncNotify,
	"max_rd_atomic": abi.QPMaskMaxQPRdAtomic, "max_dest_rd_atomic": abi.QPMaskMaxDestRdAtomic,
	"min_rnr_timer": abi.QPMaskMinRNRTimer, "port_num": abi.QPMaskPort,
	"timeout": abi.QPMaskTimeout, "retry_cnt": abi.QPMaskRetryCnt, "rnr_retry": abi.QPMaskRNRRetry,
}

// showFor leaves out the fields that do not count by the structure itself.
func showFor(s abi.Struct) func(string) bool {
	m, ok := s.(*abi.ModifyQP)
	if !ok {
		return nil
	}
	return func(name string) bool {
		bit, optional := modifyBits[name]
		return !optional || m.AttrMask&bit != 0
	}
}
