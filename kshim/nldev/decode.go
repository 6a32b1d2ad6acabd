package nldev

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"syscall"
)

// Error is a message of the kernel that cannot be understood: EBADMSG.
type Error struct{ Reason string }

func (e *Error) Error() string { return "message from the kernel: " + e.Reason }
func (e *Error) Unwrap() error { return syscall.EBADMSG }

func bad(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Decode reads attributes into the structure that v points to. A field's tag
// names its attribute, and may say that it is required:
//
//	LQPN  uint32  `nldev:"RES_LQPN,required"`
//	Port  *uint32 `nldev:"PORT_INDEX"` // nil where the kernel sent none
//	Owner Owner   // no tag: its fields' attributes stand beside the others
//	List  []QP    `nldev:"RES_QP"` // a table of attributes RES_QP_ENTRY
//
// Fields are numbers, switches (u8), strings, addresses (netip.AddrPort),
// DriverAttrs, pointers to these, and tables of structures.
func Decode(b []byte, v any) error {
	s := reflect.ValueOf(v).Elem()
	return plan(s.Type()).decode(b, s)
}

// DecodeTable reads the table of a message: entries RES_QP_ENTRY of RES_QP.
func DecodeTable[T any](b []byte, table string) (list []T, err error) {
	f, typ, found := field{name: table}, attribute(table), false
	err = walk(b, func(t uint16, v []byte) error {
		if t != typ {
			return nil
		}
		found = true
		return f.set(reflect.ValueOf(&list).Elem(), v)
	})
	if err == nil && !found {
		err = bad("no table %s", table)
	}
	return list, err
}

// field is where an attribute goes.
type field struct {
	name     string
	index    []int
	required bool
}

// fields are a structure's, by attribute.
type fields map[uint16]field

func plan(t reflect.Type) fields {
	all := fields{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("nldev")
		if name, option, _ := strings.Cut(tag, ","); tagged {
			all[attribute(name)] = field{name, f.Index, option == "required"}
		} else if f.Type.Kind() == reflect.Struct {
			for typ, inner := range plan(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				all[typ] = inner
			}
		}
	}
	return all
}

func (all fields) decode(b []byte, s reflect.Value) error {
	seen := map[uint16]bool{}
	err := walk(b, func(typ uint16, v []byte) error {
		f, ok := all[typ]
		if !ok {
			return nil
		}
		seen[typ] = true
		return f.set(s.FieldByIndex(f.index), v)
	})
	for typ, f := range all {
		if err == nil && f.required && !seen[typ] {
			err = bad("%s without %s", s.Type().Name(), f.name)
		}
	}
	return err
}

// set gives a field its attribute's value.
func (f *field) set(to reflect.Value, v []byte) error {
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	size := 0
	switch to.Kind() {
	case reflect.Bool, reflect.Uint8:
		size = 1
	case reflect.Uint32:
		size = 4
	case reflect.Uint64:
		if size = 8; len(v) == 4 { // UVERBS_DRIVER_ID is u64 in the header and u32 in the code
			size = 4
		}
	}
	if size > 0 && len(v) != size {
		return bad("%s has %d bytes, not %d", f.name, len(v), size)
	}
	switch {
	case to.Kind() == reflect.Bool:
		to.SetBool(v[0] != 0)
	case size == 1:
		to.SetUint(uint64(v[0]))
	case size == 4:
		to.SetUint(uint64(binary.NativeEndian.Uint32(v)))
	case size == 8:
		to.SetUint(binary.NativeEndian.Uint64(v))
	case to.Kind() == reflect.String:
		to.SetString(text(v))
	default:
		return f.setOther(to, v)
	}
	return nil
}

func (f *field) setOther(to reflect.Value, v []byte) (err error) {
	switch x := to.Addr().Interface().(type) {
	case *netip.AddrPort:
		*x, err = sockaddr(v)
		return err
	case *DriverAttrs:
		*x, err = driverAttrs(v)
		return err
	}
	entry, inner := attribute(strings.TrimSuffix(f.name, "S")+"_ENTRY"), plan(to.Type().Elem())
	return walk(v, func(typ uint16, v []byte) error {
		if typ != entry {
			return nil
		}
		o := reflect.New(to.Type().Elem()).Elem()
		err := inner.decode(v, o)
		to.Set(reflect.Append(to, o))
		return err
	})
}

// walk visits attributes until visit returns an error.
func walk(b []byte, visit func(typ uint16, v []byte) error) error {
	for len(b) > 0 {
		if len(b) < header {
			return bad("%d stray bytes behind the attributes", len(b))
		}
		n, typ := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])&typeMask
		if n < header || n > len(b) {
			return bad("attribute %d says it has %d bytes of %d", typ, n, len(b))
		}
		if err := visit(typ, b[header:n]); err != nil {
			return err
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}

// text reads a string that ends at its NUL, if it has one.
func text(v []byte) string {
	v, _, _ = bytes.Cut(v, []byte{0})
	return string(v)
}

// Address families of Linux; other systems number theirs differently.
const (
	afInet  = 2
	afInet6 = 10
)

// sockaddr reads a __kernel_sockaddr_storage: family in the machine's order,
// port and address in network order. Of other families it returns an invalid
// address.
func sockaddr(b []byte) (netip.AddrPort, error) {
	var none netip.AddrPort
	if len(b) < 8 {
		return none, bad("a socket address of %d bytes", len(b))
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch binary.NativeEndian.Uint16(b) {
	case afInet:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port), nil
	case afInet6:
		if len(b) < 24 {
			return none, bad("an IPv6 socket address of %d bytes", len(b))
		}
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), port), nil
	}
	return none, nil
}

// DriverAttrs holds a driver's attributes of an object beyond the common ones.
type DriverAttrs []DriverAttr

// DriverAttr is a driver's key and value.
type DriverAttr struct {
	Key   string
	Value any // string, int32, uint32, int64 or uint64
	Hex   bool
}

// driverAttrs reads a driver's table: runs of key, optional print type, value.
func driverAttrs(b []byte) (list DriverAttrs, err error) {
	var next DriverAttr
	err = walk(b, func(typ uint16, v []byte) error {
		name, known := names().attributeNames[typ]
		switch {
		case !known:
			return nil
		case name == "DRIVER_STRING" && next.Key == "":
			next.Key = text(v)
			return nil
		case name == "DRIVER_PRINT_TYPE" && len(v) == 1:
			next.Hex = v[0] == 1
			return nil
		case name == "DRIVER_STRING":
			next.Value = text(v)
		case name == "DRIVER_S32" && len(v) == 4:
			next.Value = int32(binary.NativeEndian.Uint32(v))
		case name == "DRIVER_U32" && len(v) == 4:
			next.Value = binary.NativeEndian.Uint32(v)
		case name == "DRIVER_S64" && len(v) == 8:
			next.Value = int64(binary.NativeEndian.Uint64(v))
		case name == "DRIVER_U64" && len(v) == 8:
			next.Value = binary.NativeEndian.Uint64(v)
		default:
			return bad("%s of %d bytes in a driver's table", name, len(v))
		}
		list = append(list, next)
		next = DriverAttr{}
		return nil
	})
	return list, err
}
