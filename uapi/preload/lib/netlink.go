//go:build linux && cgo

package main

// #include <stddef.h>
import "C"

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim/cmemory"
	"github.com/rdmashim/rdmashim/kshim/rdmanl"
)

// answerFile is the socket in a process's directory at which it answers other
// processes.
const answerFile = "netlink"

// startNetlink begins to answer the program's netlink sockets, and other
// processes of the user that run so. Without it there are none: the program's
// calls fail, and others do not see its objects.
func startNetlink(dir string) {
	s := &rdmanl.Server{Process: kernel.process, PID: os.Getpid()}
	own := filepath.Join(dir, answerFile)
	if l, err := net.Listen("unix", own); err == nil {
		go rdmanl.Serve(l, s)
	}
	s.Beside = rdmanl.Beside(filepath.Join(filepath.Dir(dir), "*", answerFile), own, warnOfStopped())
	kernel.netlink, _ = rdmanl.NewSocket(s)
}

// warnOfStopped prints on standard error, once for each process, that its
// objects are not listed.
func warnOfStopped() func(pid int) {
	var warned sync.Map
	return func(pid int) {
		if _, again := warned.LoadOrStore(pid, true); !again {
			comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			fmt.Fprintf(os.Stderr, "rdmashim: process %d (%s) is stopped: its objects are not listed\n", pid, strings.TrimSpace(string(comm)))
		}
	}
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
