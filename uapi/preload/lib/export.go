//go:build linux && cgo

package main

// #include <stddef.h>
// #include <stdint.h>
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/planted"
	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/kshim/rdmanl"
	"github.com/rdmashim/rdmashim/kshim/refuse"
	"github.com/rdmashim/rdmashim/kshim/trace"
	"github.com/rdmashim/rdmashim/uapi/minikernel"
)

// kernel is the mini kernel as the program has it.
var kernel struct {
	machine *emu.Machine
	process *emu.Process
	faulty  kshim.Kernel // process, or what lets calls fail (RDMASHIM_FAULT)
	traced  kshim.Kernel // faulty, or what prints its calls (RDMASHIM_TRACE)
	host    *program
	tree    *planted.Tree
	netlink *rdmanl.Socket // nil: it could not be had
	devices *preload.Devices
}

// at once is the context of calls that do not wait.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// number is an error's errno, negative.
func number(err error) int {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		errno = syscall.EAGAIN
	case !errors.As(err, &errno) || errno == 0:
		errno = syscall.EIO
	}
	return -int(errno)
}

//export rdmashimStart
func rdmashimStart(kinds *C.uint32_t, files, moved *C.int, n C.int) C.int {
	readProgram()
	env := preload.FromEnvironment()
	machine := minikernel.Machine()
	kernel.machine = machine
	kernel.devices = preload.NewDevices(machine, env.Devices)
	table := func(at *C.int) []int32 { return unsafe.Slice((*int32)(unsafe.Pointer(at)), int(n)) }
	host, err := newProgram(unsafe.Slice((*uint32)(unsafe.Pointer(kinds)), int(n)), table(files), table(moved))
	if err != nil {
		return C.int(number(err))
	}
	name := os.Args[0]
	kernel.host, kernel.process = host, machine.ProcessOf(host, name)
	if kernel.faulty, _, err = refuse.Env(kernel.process, ""); err != nil {
		fmt.Fprintf(os.Stderr, "rdmashim: no faults: %v\n", err)
		kernel.faulty = kernel.process
	}
	if kernel.traced, _, err = trace.Env(kernel.faulty, name, trace.WithMemory(host.Memory)); err != nil {
		fmt.Fprintf(os.Stderr, "rdmashim: no trace: %v\n", err)
		kernel.traced = kernel.faulty
	}
	if kernel.tree, err = planted.New(env.Run, machine.Process("sysfs")); err != nil {
		fmt.Fprintf(os.Stderr, "rdmashim: %v\n", err)
		return C.int(number(err))
	}
	startNetlink(kernel.tree.Dir())
	return 0
}

//export rdmashimPlant
func rdmashimPlant(path, to *C.char, n C.size_t) C.int {
	kernel.devices.RLock()
	defer kernel.devices.RUnlock()
	at, err := kernel.tree.Plant(C.GoString(path))
	if err == nil && len(at) >= int(n) {
		err = syscall.ENAMETOOLONG
	}
	if err == nil {
		room := unsafe.Slice((*byte)(unsafe.Pointer(to)), int(n))
		room[copy(room, at)] = 0
	}
	return C.int(number(err))
}

//export rdmashimOpen
func rdmashimOpen(path *C.char, flags C.int) C.int {
	err := kernel.devices.Bind()
	var f kshim.File
	if err == nil {
		f, err = kernel.traced.Open(C.GoString(path))
	}
	if err != nil {
		return C.int(number(err))
	}
	return C.int(f.(interface{ FD() int }).FD())
}

// file is the open file of a number.
func file(fd C.int) (kshim.File, error) {
	f, err := kernel.process.File(int32(fd))
	if err != nil {
		return nil, err
	}
	return observed(f, fd), nil
}

// observed is a file whose calls can fail, and are traced.
func observed(f kshim.File, fd C.int) kshim.File {
	return trace.Of(kernel.traced, refuse.Of(kernel.faulty, f), int(fd))
}

//export rdmashimClose
func rdmashimClose(fd C.int) C.int {
	f, err := kernel.process.File(int32(fd))
	if err != nil {
		return C.int(number(err))
	}
	err = trace.Of(kernel.traced, f, int(fd)).Close()
	kernel.host.closed(int32(fd))
	return C.int(number(err))
}

//export rdmashimMove
func rdmashimMove(fd C.int) C.int { return C.int(number(kernel.host.move(int32(fd)))) }

//export rdmashimRead
func rdmashimRead(fd C.int, buf unsafe.Pointer, n C.size_t) C.long {
	return read(fd, buf, n, false)
}

// rdmashimAttend reads an event of a completion channel. While there is none it
// may drive the device, for some milliseconds.
//
//export rdmashimAttend
func rdmashimAttend(fd C.int, buf unsafe.Pointer, n C.size_t) C.long {
	return read(fd, buf, n, true)
}

func read(fd C.int, buf unsafe.Pointer, n C.size_t, attend bool) C.long {
	f, err := kernel.process.File(int32(fd))
	if err != nil {
		return C.long(number(err))
	}
	var event [64]byte // more than any has
	var got int
	room := min(int(n), len(event))
	if a, ok := f.(emu.Attendable); attend && ok {
		got, err = a.Attend(atOnce, observed(f, fd), event[:room])
	} else {
		got, err = observed(f, fd).Read(atOnce, event[:room])
	}
	if err != nil {
		return C.long(number(err))
	}
	copy(unsafe.Slice((*byte)(buf), room), event[:got])
	return C.long(got)
}

//export rdmashimWrite
func rdmashimWrite(fd C.int, buf unsafe.Pointer, n C.size_t) C.long {
	f, err := file(fd)
	if err != nil {
		return C.long(number(err))
	}
	got, err := f.Write(unsafe.Slice((*byte)(buf), int(n)))
	if err != nil {
		return C.long(number(err))
	}
	return C.long(got)
}

//export rdmashimIoctl
func rdmashimIoctl(fd C.int, request C.ulong, arg unsafe.Pointer) C.int {
	f, err := file(fd)
	if err != nil {
		return C.int(number(err))
	}
	if request != rdmaVerbsIoctl {
		return C.int(number(syscall.ENOTTY))
	}
	n, err := length(uintptr(arg))
	if err != nil {
		return C.int(number(err))
	}
	return C.int(number(f.Ioctl(unsafe.Slice((*byte)(arg), int(n)))))
}

// rdmaVerbsIoctl is RDMA_VERBS_IOCTL, which is _IOWR(0x1b, 1, struct
// ib_uverbs_ioctl_hdr).
const rdmaVerbsIoctl = 0xc0181b01

//export rdmashimProgress
func rdmashimProgress() {
	kernel.machine.Progress()
}

// exitLimit bounds how long a program's end waits for its devices.
const exitLimit = 2 * time.Second

//export rdmashimExit
func rdmashimExit(forked C.int) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		kernel.process.Exit()
		_ = kernel.devices.Remove()
	}()
	select {
	case <-ended:
	case <-time.After(exitLimit):
	}
	if forked == 0 { // no child looks at it
		_ = kernel.tree.Remove()
	}
}
