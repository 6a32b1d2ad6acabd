//go:build linux && cgo

package main

// #include "rdma.h"
import "C"

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/uapi"
)

//export rdmashimLocalEndpoint
func rdmashimLocalEndpoint(qp C.int, local *C.struct_rdma_endpoint, text *C.char) C.int {
	return call(text, func(c *uapi.Device) (int, error) {
		e, err := c.LocalEndpoint(uapi.QP(qp))
		if err != nil {
			return 0, err
		}
		b, err := e.MarshalBinary()
		if err != nil {
			return 0, err
		}
		var given C.struct_rdma_endpoint
		for i := range given.bytes {
			given.bytes[i] = C.uchar(b[i])
		}
		return 0, store(local, 0, given)
	})
}

//export rdmashimConnectQP
func rdmashimConnectQP(qp C.int, remote *C.struct_rdma_endpoint, text *C.char) C.int {
	return call(text, func(c *uapi.Device) (int, error) {
		given, err := load(remote)
		if err != nil {
			return 0, err
		}
		var b []byte
		for _, u := range given.bytes {
			b = append(b, byte(u))
		}
		var e uapi.Endpoint
		if err := e.UnmarshalBinary(b); err != nil {
			return 0, fmt.Errorf("rdma ConnectQP qp %d: %w", int(qp), err)
		}
		return 0, c.ConnectQP(uapi.QP(qp), e)
	})
}

//export rdmashimConnectOver
func rdmashimConnectOver(qp, socket, mr C.int, remote *C.struct_rdma_region, text *C.char) C.int {
	return call(text, func(c *uapi.Device) (int, error) {
		var mrs []uapi.MR
		if mr != -1 {
			local, err := region(mr)
			if err != nil {
				return 0, err
			}
			mrs = append(mrs, local)
		}
		conn, giveBack, err := borrow(int(socket))
		if err != nil {
			return 0, fmt.Errorf("rdma ConnectOver socket %d: %w", int(socket), err)
		}
		defer giveBack()
		peer, err := c.ConnectOver(context.Background(), conn, uapi.QP(qp), mrs, nil)
		if err != nil || remote == nil {
			return 0, err
		}
		var first C.struct_rdma_region
		if len(peer.Regions) > 0 {
			first = regionOfC(peer.Regions[0])
		}
		return 0, store(remote, 0, first)
	})
}

// borrow is a socket of the program as a connection, until it is given back.
// Go has to make it non-blocking, which a duplicate shares.
func borrow(socket int) (conn net.Conn, giveBack func(), err error) {
	kind, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return nil, nil, err
	}
	if kind != unix.SOCK_STREAM {
		return nil, nil, fmt.Errorf("it is no stream socket: %w", syscall.EPROTOTYPE)
	}
	flags, err := unix.FcntlInt(uintptr(socket), unix.F_GETFL, 0)
	if err != nil {
		return nil, nil, err
	}
	dup, err := unix.FcntlInt(uintptr(socket), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(dup), "socket")
	defer f.Close()
	if conn, err = net.FileConn(f); err != nil {
		return nil, nil, err
	}
	return conn, func() {
		_ = conn.Close()
		_, _ = unix.FcntlInt(uintptr(socket), unix.F_SETFL, flags)
	}, nil
}
