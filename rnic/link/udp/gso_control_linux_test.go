//go:build !udpportable

package udp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// controlBytes is the control message of e as it lies in memory.
func controlBytes(e *envelope) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&e.control)), unix.CmsgSpace(2))
}
