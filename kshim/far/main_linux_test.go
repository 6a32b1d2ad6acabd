package far

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
)

// asProgram in the environment makes the test binary the program whose memory
// is far. Its value is written at the fixed address.
const asProgram = "RDMASHIM_FAR_PROGRAM"

// fixed is the address of a page that every program has.
const fixed = 0x10_0000_0000

func TestMain(m *testing.M) {
	if name := os.Getenv(asProgram); name != "" {
		beProgram(name)
	}
	leak.Main(m)
}

// page is as many bytes as the program's mappings are multiples of.
var page = uint64(os.Getpagesize())

// at is the program's own memory.
func at(addr uint64, n int) []byte {
	p := uintptr(addr)
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

// beProgram carries out commands, and answers each with a line. It never
// returns.
func beProgram(name string) {
	mmap := func(addr, n uint64, prot, flags int) uint64 {
		p, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(addr), uintptr(n), uintptr(prot), uintptr(flags|unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE), ^uintptr(0), 0)
		if errno != 0 {
			fmt.Println("mmap:", errno)
			os.Exit(1)
		}
		return uint64(p)
	}
	const both = unix.PROT_READ | unix.PROT_WRITE
	copy(at(mmap(fixed, page, both, unix.MAP_FIXED_NOREPLACE), 8), name)
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var do string
		var addr, n uint64
		var prot int
		_, _ = fmt.Sscan(in.Text(), &do, &addr, &n, &prot)
		var errno syscall.Errno
		switch do {
		case "map":
			addr = mmap(0, n, both, 0)
		case "unmap":
			_, _, errno = unix.Syscall(unix.SYS_MUNMAP, uintptr(addr), uintptr(n), 0)
		case "protect":
			_, _, errno = unix.Syscall(unix.SYS_MPROTECT, uintptr(addr), uintptr(n), uintptr(prot))
		case "show":
			fmt.Println(hex.EncodeToString(at(addr, int(n))))
			continue
		case "watch":
			fmt.Println(watch(addr, n))
			continue
		case "toggle":
			fmt.Println(toggle(addr))
			continue
		case "execute":
			os.Setenv(asProgram, "new")
			errno = syscall.Exec("/proc/self/exe", os.Args, os.Environ()).(syscall.Errno)
		}
		fmt.Println(addr, int(errno))
	}
	os.Exit(0)
}

const (
	bodySize = 256 // of a message that watch receives, with its last word
	ackAt    = 512 // where it says which one it has
)

// watch receives n messages: when the last word is new, all before it is. At an
// older byte it ends.
func watch(addr, n uint64) string {
	body, last := at(addr, bodySize-8), (*uint64)(unsafe.Pointer(&at(addr+bodySize-8, 8)[0]))
	ack := (*uint64)(unsafe.Pointer(&at(addr+ackAt, 8)[0]))
	for k := uint64(1); k <= n; k++ {
		for atomic.LoadUint64(last) != k {
		}
		for i, b := range body {
			if b != byte(k) {
				atomic.StoreUint64(ack, math.MaxUint64)
				return fmt.Sprintf("message %d: byte %d is %d", k, i, b)
			}
		}
		atomic.StoreUint64(ack, k)
	}
	return "whole"
}

// toggle watches a word that is all zeroes or all ones, until it is one. It
// counts the changes in the word behind it; all ones: it has ended.
func toggle(addr uint64) string {
	word, changes := (*uint64)(unsafe.Pointer(&at(addr, 8)[0])), (*uint64)(unsafe.Pointer(&at(addr+8, 8)[0]))
	for seen := uint64(0); ; {
		switch w := atomic.LoadUint64(word); {
		case w == 1:
			return "whole"
		case w != 0 && w != ^uint64(0):
			atomic.StoreUint64(changes, math.MaxUint64)
			return fmt.Sprintf("torn: %#x", w)
		case w != seen:
			seen = w
			atomic.AddUint64(changes, 1)
		}
	}
}

// program is a process whose memory is far.
type program struct {
	child.Helper
	t   testing.TB
	far *Memory
}

func start(t testing.TB) *program {
	t.Helper()
	p := &program{t: t, Helper: child.Start(t, asProgram+"=old")}
	require.Equal(t, "ready", p.line())
	p.open()
	return p
}

func (p *program) open() {
	p.t.Helper()
	far := open(p.t, p.Process.Pid)
	p.far = far
	p.t.Cleanup(func() { _ = far.Close() })
}

func open(t testing.TB, pid int) *Memory {
	t.Helper()
	mem := must.Get(os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0))(t)
	return New(mem, pid)
}

func (p *program) line() string {
	p.t.Helper()
	line := must.Get(p.Out.ReadString('\n'))(p.t)
	return strings.TrimSpace(line)
}

// tell gives a command whose answer the caller reads.
func (p *program) tell(format string, args ...any) {
	p.t.Helper()
	must.Get(fmt.Fprintf(p.In.(io.Writer), format+"\n", args...))(p.t)
}

// do gives a command that must succeed, and returns the address it answers.
func (p *program) do(format string, args ...any) (addr uint64) {
	p.t.Helper()
	p.tell(format, args...)
	var errno int
	must.Get(fmt.Sscan(p.line(), &addr, &errno))(p.t)
	require.Zero(p.t, errno, format)
	return addr
}

// show returns memory as the program itself sees it.
func (p *program) show(addr, n uint64) []byte {
	p.t.Helper()
	p.tell("show %d %d", addr, n)
	return must.Get(hex.DecodeString(p.line()))(p.t)
}
