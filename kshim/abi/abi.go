package abi

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
)

// le is the byte order of the kernels this package speaks to, amd64 and arm64.
// be is the order of GUIDs and of what goes on the wire.
var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

type shortError struct{}

func (shortError) Error() string        { return "abi: buffer shorter than the structure" }
func (shortError) Is(target error) bool { return target == syscall.EINVAL }

// ErrShort is the error of Parse for a buffer that is too short;
// errors.Is(ErrShort, syscall.EINVAL) holds.
var ErrShort error = shortError{}

// Struct is a fixed-size structure of the kernel's interface. The tag "c" of a
// field is its name in C.
type Struct interface {
	// Put encodes the structure into the start of b, as many bytes as its Size
	// constant says. Bytes that belong to no field become 0. A shorter b
	// panics.
	Put(b []byte)

	// Parse decodes the start of b. A b shorter than the structure is ErrShort
	// and leaves the fields alone.
	Parse(b []byte) error
}

// enumString returns the name of v, or its type and number.
func enumString[T ~uint8 | ~uint16 | ~uint32](names []string, v T, typ string) string {
	if int64(v) < int64(len(names)) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", typ, uint32(v))
}

type flagName struct {
	bit  uint32
	name string
}

// flagString joins the names of the bits of v by "|".
func flagString(v uint32, names []flagName) string {
	if v == 0 {
		return "0"
	}
	var parts []string
	for _, n := range names {
		if v&n.bit != 0 {
			parts = append(parts, n.name)
			v &^= n.bit
		}
	}
	if v != 0 {
		parts = append(parts, fmt.Sprintf("%#x", v))
	}
	return strings.Join(parts, "|")
}
