//go:build linux && cgo

package main

// #include <stddef.h>
import "C"

import (
	"errors"
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

// rdmashimNetlink sends n pieces, of a struct iovec each, as one request.
//
//export rdmashimNetlink
func rdmashimNetlink(fd C.int, pieces unsafe.Pointer, n C.size_t) C.long {
	sent, err := gather(pieces, uint64(n))
	if err == nil {
		kernel.devices.RLock()
		defer kernel.devices.RUnlock()
		err = kernel.netlink.Request(int(fd), sent)
	}
	if err != nil {
		return C.long(number(err))
	}
	return C.long(len(sent))
}

// maxPieces is UIO_MAXIOV.
const maxPieces = 1024

func gather(pieces unsafe.Pointer, n uint64) (sent []byte, err error) {
	if n > maxPieces {
		return nil, syscall.EMSGSIZE
	}
	if kernel.netlink == nil {
		return nil, syscall.EFAULT
	}
	fault := cmemory.Guard(func() {
		for _, v := range unsafe.Slice((*struct{ addr, size uint64 })(pieces), n) {
			mem := cmemory.Slice(v.addr, v.size)
			switch {
			case v.size > rdmanl.MaxRequest-uint64(len(sent)):
				err = syscall.EMSGSIZE
			case v.size == 0:
				continue
			case mem == nil:
				err = syscall.EFAULT
			default:
				sent = append(sent, mem...)
				continue
			}
			return
		}
	})
	return sent, errors.Join(fault, err)
}
