package abi

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
)

// le is the byte order of the kernels this package speaks to, amd64 and arm64.
var le = binary.LittleEndian

type shortError struct{}

func (shortError) Error() string        { return "abi: buffer shorter than the structure" }
func (shortError) Is(target error) bool { return target == syscall.EINVAL }

// ErrShort is what Parse gives for a buffer that is too short; errors.Is(ErrShort, syscall.EINVAL) holds.
var ErrShort error = shortError{}

// Struct is a fixed-size structure of the kernel's interface.
type Struct interface {
	Put(b []byte)
	Parse(b []byte) error
}

func enumString[T ~uint8 | ~uint16 | ~uint32](names map[T]string, v T, typ string) string {
	if s, ok := names[v]; ok {
		return s
	}
	return fmt.Sprintf("%s(%d)", typ, uint32(v))
}

type flagName struct {
	bit  uint32
	name string
}

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
