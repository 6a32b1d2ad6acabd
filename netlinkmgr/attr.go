package netlinkmgr

import (
	"encoding/binary"
	"fmt"
)

// A netlink attribute: length u16 (header included), type u16, payload, pad to
// four bytes; all in the machine's byte order (include/uapi/linux/netlink.h).
const (
	attrHeader   = 4
	attrTypeMask = 0x3fff // NLA_TYPE_MASK: without NESTED and NET_BYTEORDER
)

func align4(n int) int { return (n + 3) &^ 3 }

func appendAttr(b []byte, t attrType, payload []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(attrHeader+len(payload)))
	b = binary.NativeEndian.AppendUint16(b, uint16(t))
	b = append(b, payload...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func appendU8(b []byte, t attrType, v uint8) []byte { return appendAttr(b, t, []byte{v}) }

func appendU32(b []byte, t attrType, v uint32) []byte {
	return appendAttr(b, t, binary.NativeEndian.AppendUint32(nil, v))
}

func appendString(b []byte, t attrType, s string) []byte {
	return appendAttr(b, t, append([]byte(s), 0))
}

// attrs walks the attributes of a message or of a nest. The first error
// sticks and ends the walk.
//
//	for a := newAttrs(b); a.next(); {
//		switch a.typ { case attrDevName: d.Name = a.str() }
//	}
type attrs struct {
	rest []byte
	typ  attrType
	val  []byte
	err  error
}

func newAttrs(b []byte) *attrs { return &attrs{rest: b} }

// next steps to the next attribute; false at the end or after an error.
func (a *attrs) next() bool {
	if a.err != nil || len(a.rest) == 0 {
		return false
	}
	if len(a.rest) < attrHeader {
		return a.fail("%d stray bytes behind the attributes", len(a.rest))
	}
	n := int(binary.NativeEndian.Uint16(a.rest))
	a.typ = attrType(binary.NativeEndian.Uint16(a.rest[2:]) & attrTypeMask)
	if n < attrHeader || n > len(a.rest) {
		return a.fail("attribute %d says it has %d bytes of %d", a.typ, n, len(a.rest))
	}
	a.val = a.rest[attrHeader:n]
	a.rest = a.rest[min(align4(n), len(a.rest)):]
	return true
}

func (a *attrs) fail(format string, args ...any) bool {
	if a.err == nil {
		a.err = &MessageError{Reason: fmt.Sprintf(format, args...)}
	}
	return false
}

// fixed checks the payload's size and gives bytes to read from in any case.
func (a *attrs) fixed(n int) []byte {
	if len(a.val) != n {
		a.fail("attribute %d has %d bytes, not %d", a.typ, len(a.val), n)
		return make([]byte, n)
	}
	return a.val
}

func (a *attrs) u8() uint8   { return a.fixed(1)[0] }
func (a *attrs) u32() uint32 { return binary.NativeEndian.Uint32(a.fixed(4)) }
func (a *attrs) u64() uint64 { return binary.NativeEndian.Uint64(a.fixed(8)) }

func (a *attrs) u32ptr() *uint32 { v := a.u32(); return &v }
func (a *attrs) boolptr() *bool  { v := a.u8() != 0; return &v }

// number reads an attribute whose width the kernel's header and its code do
// not agree on (UVERBS_DRIVER_ID: u64 there, u32 here).
func (a *attrs) number() uint64 {
	if len(a.val) == 4 {
		return uint64(a.u32())
	}
	return a.u64()
}

// str reads a string that ends at its NUL, if it has one.
func (a *attrs) str() string {
	for i, c := range a.val {
		if c == 0 {
			return string(a.val[:i])
		}
	}
	return string(a.val)
}

// nest walks the attributes inside this one; an error inside sticks to both.
func (a *attrs) nest(visit func(*attrs)) {
	in := newAttrs(a.val)
	for in.next() {
		visit(in)
	}
	if a.err == nil {
		a.err = in.err
	}
}

// entries visits the entries of a table: nests of type t, others are skipped.
func (a *attrs) entries(t attrType, visit func(entry []byte) error) {
	a.nest(func(in *attrs) {
		if in.typ != t {
			return
		}
		if err := visit(in.val); err != nil && in.err == nil {
			in.err = err
		}
	})
}
