//go:build linux && cgo

package main

// #include "rdma.h"
// enum { RDMASHIM_TEXT = 512 };
import "C"

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/rdmashim/rdmashim/uapi"
)

// failed says err in text, C's room for a sentence, and returns its errno,
// negative.
func failed(err error, text *C.char) C.int {
	room := unsafe.Slice((*byte)(unsafe.Pointer(text)), C.RDMASHIM_TEXT)
	room[copy(room[:len(room)-1], err.Error())] = 0
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno) && errno > 0:
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		errno = syscall.ETIMEDOUT
	case errors.Is(err, net.ErrClosed):
		errno = syscall.EBADF
	case errors.Is(err, io.ErrUnexpectedEOF):
		errno = syscall.ECONNRESET
	default:
		errno = syscall.EIO
	}
	return -C.int(errno)
}

// call makes a call on the device, which returns a number of zero or more.
func call(text *C.char, f func(c *uapi.Device) (int, error)) C.int {
	c, err := current()
	var n int
	if err == nil {
		n, err = f(c)
	}
	if err != nil {
		return failed(err, text)
	}
	return C.int(n)
}

// callOn makes a call on a memory region of the device.
func callOn(mr C.int, text *C.char, f func(c *uapi.Device, local uapi.MR) (int, error)) C.int {
	return call(text, func(c *uapi.Device) (int, error) {
		local, err := region(mr)
		if err != nil {
			return 0, err
		}
		return f(c, local)
	})
}

// identity is a work request's id as C has it: C's int counts on from 0 after
// its largest value.
func identity(id uapi.WRID) int { return int(id & math.MaxInt32) }

//export rdmashimOpen
func rdmashimOpen(name, text *C.char) C.int {
	device, err := loadText(name)
	if err == nil {
		err = open(device)
	}
	if err != nil {
		return failed(err, text)
	}
	return 0
}

//export rdmashimClose
func rdmashimClose(text *C.char) C.int {
	if err := closeDevice(); err != nil {
		return failed(err, text)
	}
	return 0
}

// exitLimit bounds how long a program's end waits for its device, which tells
// its peers.
const exitLimit = 2 * time.Second

//export rdmashimExit
func rdmashimExit() {
	closed := make(chan error, 1)
	go func() { closed <- closeDevice() }()
	select {
	case <-closed:
	case <-time.After(exitLimit):
	}
}

//export rdmashimRegMR
func rdmashimRegMR(addr unsafe.Pointer, n C.uint64_t, access C.int, text *C.char) C.int {
	return call(text, func(c *uapi.Device) (int, error) {
		mem, err := lent(addr, n, uapi.Access(access))
		if err != nil {
			return 0, err
		}
		mr, err := c.RegMR(mem, uapi.Access(access))
		if err != nil {
			return 0, err
		}
		return enterRegion(mr), nil
	})
}

//export rdmashimDeregMR
func rdmashimDeregMR(mr C.int, text *C.char) C.int {
	return callOn(mr, text, func(c *uapi.Device, local uapi.MR) (int, error) {
		leaveRegion(mr)
		return 0, c.DeregMR(local)
	})
}

//export rdmashimQueryMR
func rdmashimQueryMR(mr C.int, to *C.struct_rdma_region, text *C.char) C.int {
	return callOn(mr, text, func(c *uapi.Device, local uapi.MR) (int, error) {
		info, err := c.QueryMR(local)
		if err != nil {
			return 0, err
		}
		return 0, store(to, 0, regionOfC(info.Region()))
	})
}

func regionOfC(r uapi.Region) C.struct_rdma_region {
	return C.struct_rdma_region{addr: C.uint64_t(r.Addr), length: C.uint64_t(r.Length), rkey: C.uint32_t(r.RKey), access: C.uint32_t(r.Access)}
}

//export rdmashimCreateQP
func rdmashimCreateQP(sends, receives C.int, text *C.char) C.int {
	return call(text, func(c *uapi.Device) (int, error) {
		qp, err := c.CreateQP(int(sends), int(receives))
		return int(qp), err
	})
}

//export rdmashimDestroyQP
func rdmashimDestroyQP(qp C.int, text *C.char) C.int {
	return call(text, func(c *uapi.Device) (int, error) { return 0, c.DestroyQP(uapi.QP(qp)) })
}

//export rdmashimPostWrite
func rdmashimPostWrite(qp, mr C.int, offset, addr C.uint64_t, rkey C.uint32_t, n C.uint64_t, text *C.char) C.int {
	return callOn(mr, text, func(c *uapi.Device, local uapi.MR) (int, error) {
		id, err := c.PostWrite(uapi.QP(qp), local, uint64(offset), uint64(addr), uint32(rkey), uint64(n))
		return identity(id), err
	})
}

//export rdmashimPostRead
func rdmashimPostRead(qp, mr C.int, offset, addr C.uint64_t, rkey C.uint32_t, n C.uint64_t, text *C.char) C.int {
	return callOn(mr, text, func(c *uapi.Device, local uapi.MR) (int, error) {
		id, err := c.PostRead(uapi.QP(qp), local, uint64(offset), uint64(addr), uint32(rkey), uint64(n))
		return identity(id), err
	})
}

//export rdmashimPostSend
func rdmashimPostSend(qp, mr C.int, n C.uint64_t, text *C.char) C.int {
	return callOn(mr, text, func(c *uapi.Device, local uapi.MR) (int, error) {
		id, err := c.PostSend(uapi.QP(qp), local, uint64(n))
		return identity(id), err
	})
}

//export rdmashimPostRecv
func rdmashimPostRecv(qp, mr C.int, offset, n C.uint64_t, text *C.char) C.int {
	return callOn(mr, text, func(c *uapi.Device, local uapi.MR) (int, error) {
		post := func() (uapi.WRID, error) {
			return c.PostRecv(uapi.QP(qp), local, uint64(offset), uint64(n))
		}
		id, err := post()
		if errors.Is(err, syscall.EINVAL) && begins(c, uapi.QP(qp)) {
			id, err = post()
		}
		return identity(id), err
	})
}

// begins begins a connection, as a first receive does, and reports whether none
// had begun.
func begins(c *uapi.Device, qp uapi.QP) bool {
	info, err := c.QueryQP(qp)
	if err != nil || info.State != uapi.StateReset {
		return false
	}
	_, err = c.LocalEndpoint(qp)
	return err == nil
}
