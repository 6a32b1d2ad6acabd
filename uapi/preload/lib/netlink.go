//go:build linux && cgo

package main

// #include <stddef.h>
import "C"

import (
	"os"
	"syscall"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim/cmemory"
	"github.com/rdmashim/rdmashim/kshim/rdmanl"
)

// startNetlink begins to answer the program's netlink sockets, and other
// processes of the user that run so. Without it there are none: the program's
// calls fail, and others do not see its objects.
func startNetlink(dir string) {
	s := &rdmanl.Server{Process: kernel.process, PID: os.Getpid()}
	s.Join(dir)
	kernel.netlink, _ = rdmanl.NewSocket(s)
}

//export rdmashimNetlink
func rdmashimNetlink(fd C.int, buf unsafe.Pointer, n C.size_t) C.long {
	if n > rdmanl.MaxRequest {
		return C.long(number(syscall.EMSGSIZE))
	}
	mem := cmemory.Slice(uint64(uintptr(buf)), uint64(n))
	if mem == nil || kernel.netlink == nil {
		return C.long(number(syscall.EFAULT))
	}
	sent := make([]byte, n)
	err := cmemory.Guard(func() { copy(sent, mem) })
	if err == nil {
		kernel.devices.RLock()
		defer kernel.devices.RUnlock()
		err = kernel.netlink.Request(int(fd), sent)
	}
	if err != nil {
		return C.long(number(err))
	}
	return C.long(n)
}
