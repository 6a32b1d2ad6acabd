//go:build linux && (amd64 || arm64)

package supervise

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

func init() {
	parts["ordinary"] = ordinary
	parts["objects"] = objects
	parts["holder"] = func() { hear() }
	parts["events"] = takeEvents
	parts["waiter"] = waiter
	parts["relisten"] = relisten
	parts["hostile"] = hostile
	parts["churn"] = churn
	parts["rounds"] = rounds
	parts["crowd"] = crowd
	parts["reuse"] = reuse
	parts["duplicate"] = duplicate
	parts["stays"] = stays
}

var (
	input = bufio.NewScanner(os.Stdin)
	hear  = func() string { input.Scan(); return input.Text() }
	say   = func(v ...any) { fmt.Println(v...) }
)

// command is a write of a command whose response goes to resp; errno 0 is none.
func command(fd int, cmd abi.Command, req abi.Struct, size int, resp []byte) syscall.Errno {
	b := make([]byte, abi.CmdHdrSize+size)
	(&abi.CmdHdr{Command: cmd, InWords: uint16(len(b) / 4), OutWords: uint16(len(resp) / 4)}).Put(b)
	req.Put(b[abi.CmdHdrSize:])
	if len(resp) > 0 {
		binary.NativeEndian.PutUint64(b[abi.CmdHdrSize:], uint64(uintptr(unsafe.Pointer(&resp[0]))))
	}
	_, err := unix.Write(fd, b)
	runtime.KeepAlive(resp)
	errno, _ := err.(syscall.Errno)
	return errno
}

func succeed(fd int, cmd abi.Command, req abi.Struct, size, answer int) []byte {
	resp := make([]byte, answer)
	if errno := command(fd, cmd, req, size, resp); errno != 0 {
		say(cmd, errno)
		os.Exit(1)
	}
	return resp
}

// openDevice opens the device and a context, and answers both descriptors.
func openDevice() (fd, async int) {
	fd, err := unix.Open("/dev/infiniband/uverbs0", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		say("open", err)
		os.Exit(1)
	}
	return fd, int(binary.NativeEndian.Uint32(succeed(fd, abi.CmdGetContext, &abi.GetContext{}, abi.GetContextSize, abi.GetContextRespSize)))
}

func createChannel(fd int) int {
	return int(binary.NativeEndian.Uint32(succeed(fd, abi.CmdCreateCompChannel, &abi.CreateCompChannel{}, abi.CreateCompChannelSize, abi.CreateCompChannelRespSize)))
}

func createCQ(fd, channel int, user uint64) uint32 {
	resp := succeed(fd, abi.CmdCreateCQ, &abi.CreateCQ{CQE: 16, UserHandle: user, CompChannel: int32(channel)}, abi.CreateCQSize, abi.CreateCQRespSize+abi.RXECreateCQRespSize)
	say("cq", user)
	hear()
	return binary.NativeEndian.Uint32(resp)
}

// ordinary makes calls that are Linux's, with numbers, paths and addresses at
// the edges, and prints what each gave.
func ordinary() {
	dir, _ := os.MkdirTemp("", "ordinary")
	defer os.RemoveAll(dir)
	file, err := os.Create(dir + "/file")
	say(err)
	high := Window.Low + 3
	say(unix.Dup3(int(file.Fd()), high, 0))
	say(unix.Write(high, []byte("text")))
	say(unix.Writev(high, [][]byte{[]byte("te"), []byte("xt")}))
	var st unix.Stat_t
	say(unix.Fstat(high, &st), st.Size, st.Mode)
	say(unix.Fstatat(high, "", &st, unix.AT_EMPTY_PATH), st.Size)
	var sx unix.Statx_t
	say(unix.Statx(high, "", unix.AT_EMPTY_PATH, unix.STATX_SIZE, &sx), sx.Size)
	say(unix.Write(high+1, []byte("none")))
	say(unix.Fstat(high+1, &st))
	say(unix.IoctlGetInt(high, 0xc0181b01))
	link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(high))
	say(link == file.Name(), err)
	for _, name := range []string{"/sys/class/net/lo/mtu", "/dev/null", "/sys/class/infiniband_none", "/dev/infinibandx", "", dir, "/dev/../etc/passwd"} {
		fd, err := unix.Open(name, unix.O_RDONLY, 0)
		say(name == dir || err == nil || fd < 0, err, unix.Access(name, unix.R_OK), unix.Stat(name, &st), unix.Lstat(name, &st))
		unix.Close(fd)
	}
	say(unix.Open(strings.Repeat("x", 5000), unix.O_RDONLY, 0))
	// A path that ends with its page, one that does not, and none at all.
	page := os.Getpagesize()
	mem, _ := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	_ = unix.Mprotect(mem[page:], unix.PROT_NONE)
	copy(mem[page-10:], "/dev/null\x00")
	open := func(at uintptr) syscall.Errno {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, 1<<64-100, at, 0, 0, 0, 0)
		if errno == 0 {
			unix.Close(int(fd))
		}
		return errno
	}
	at := uintptr(unsafe.Pointer(&mem[0]))
	say(open(at + uintptr(page) - 10))
	mem[page-1] = 'x'
	say(open(at+uintptr(page)-10), open(16), open(0), open(1<<63))
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	say(s >= 0, err)
	say(unix.Dup3(s, high+2, 0))
	say(unix.Sendto(high+2, []byte{16, 0, 0, 0}, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

// objects opens the device twice, and at each line it hears gives back the next
// descriptor of the first: the duplicate, a child's, its own mapping.
func objects() {
	fd, _ := openDevice()
	succeed(fd, abi.CmdAllocPD, &abi.AllocPD{}, abi.AllocPDSize, abi.AllocPDRespSize)
	dup, _ := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, fd+1)
	succeed(dup, abi.CmdAllocPD, &abi.AllocPD{}, abi.AllocPDSize, abi.AllocPDRespSize)
	unix.Close(fd)
	succeed(dup, abi.CmdAllocPD, &abi.AllocPD{}, abi.AllocPDSize, abi.AllocPDRespSize)
	say("three")
	hear()
	os.Setenv(part, "holder")
	self, _ := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, os.NewFile(uintptr(dup), "device")},
	})
	say(self.Pid)
}

// takeEvents lets events come that it does not read, and counts.
func takeEvents() {
	fd, _ := openDevice()
	channel := createChannel(fd)
	cq := createCQ(fd, channel, 7)
	createCQ(fd, channel, 9)
	poll := func() int {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(channel), Events: unix.POLLIN}}, 0)
		return n
	}
	epoll, _ := unix.EpollCreate1(0)
	_ = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, channel, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET})
	edges := func() int {
		var e [4]unix.EpollEvent
		n, _ := unix.EpollWait(epoll, e[:], 0)
		return n
	}
	say("ready", poll(), edges())
	var b [64]byte
	for {
		switch line := hear(); line {
		case "":
			return
		case "edges":
			say(edges(), edges())
		case "end":
			unix.Close(fd)
		case "destroy":
			resp := succeed(fd, abi.CmdDestroyCQ, &abi.DestroyCQ{CQHandle: cq}, abi.DestroyCQSize, abi.DestroyCQRespSize)
			say("reported", binary.NativeEndian.Uint32(resp))
		default:
			n, _ := strconv.Atoi(line)
			counts := map[uint64]int{}
			for range n {
				if k, err := unix.Read(channel, b[:]); err != nil || k != abi.CompEventSize {
					say(k, err)
					break
				}
				counts[binary.NativeEndian.Uint64(b[:])]++
			}
			say(counts[7], counts[9], poll())
		}
	}
}

// response is where rdma_cm answers a part. It is on no stack, which Go moves,
// and no garbage: the commands have its address as a number.
var response [abi.UCMEventRespSize]byte

// waiter asks for an event of rdma_cm, and opens files meanwhile.
func waiter() {
	fd, err := unix.Open("/dev/infiniband/rdma_cm", unix.O_RDWR|unix.O_CLOEXEC, 0)
	say(err)
	get := make([]byte, abi.UCMHdrSize+abi.UCMGetEventSize)
	(&abi.UCMHdr{Cmd: abi.UCMCmdGetEvent, In: abi.UCMGetEventSize, Out: abi.UCMEventRespSize}).Put(get)
	(&abi.UCMGetEvent{Response: uint64(uintptr(unsafe.Pointer(&response)))}).Put(get[abi.UCMHdrSize:])
	go func() {
		runtime.LockOSThread()
		n, err := unix.Write(fd, get)
		say("event", n, err)
	}()
	for range 1000 {
		f, err := os.Open("/etc/passwd")
		if err != nil {
			say(err)
		}
		f.Close()
	}
	say("opened")
	hear()
	unix.Close(fd)
	say("closed")
	hear()
}

// relisten listens at one port with one file after the other, each of which is
// closed, by close or by dup2, before the next is opened.
func relisten() {
	manager := func() int {
		fd, _ := unix.Open("/dev/infiniband/rdma_cm", unix.O_RDWR|unix.O_CLOEXEC, 0)
		return fd
	}
	give := func(fd int, cmd abi.UCMCommand, size int, in abi.Struct, out uint16) error {
		b := make([]byte, abi.UCMHdrSize+size)
		(&abi.UCMHdr{Cmd: cmd, In: uint16(size), Out: out}).Put(b)
		in.Put(b[abi.UCMHdrSize:])
		_, err := unix.Write(fd, b)
		return err
	}
	null, _ := unix.Open(os.DevNull, unix.O_RDWR, 0)
	var at abi.SockaddrStorage
	n, _ := at.Set(netip.MustParseAddrPort("127.0.0.1:7000"))
	for round := range 100 {
		fd := manager()
		err := give(fd, abi.UCMCmdCreateID, abi.UCMCreateIDSize, &abi.UCMCreateID{
			UID: 1, PS: abi.UCMPSTCP, QPType: abi.QPTRC, Response: uint64(uintptr(unsafe.Pointer(&response))),
		}, abi.UCMCreateIDRespSize)
		id := binary.NativeEndian.Uint32(response[:])
		if err == nil {
			err = give(fd, abi.UCMCmdBind, abi.UCMBindSize, &abi.UCMBind{ID: id, AddrSize: n, Addr: at}, 0)
		}
		if err == nil {
			err = give(fd, abi.UCMCmdListen, abi.UCMListenSize, &abi.UCMListen{ID: id, Backlog: 1}, 0)
		}
		if err != nil {
			say("round", round, err)
			return
		}
		if round%2 == 0 {
			_ = unix.Dup2(null, fd)
		}
		unix.Close(fd)
	}
	say("done")
}

// hostile sends commands of random bytes from many threads, while memory that
// they name comes and goes.
func hostile() {
	fd, async := openDevice()
	cm, _ := unix.Open("/dev/infiniband/rdma_cm", unix.O_RDWR|unix.O_NONBLOCK, 0)
	nl, _ := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_RDMA)
	page := os.Getpagesize()
	mem, _ := unix.Mmap(-1, 0, 16*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	at := uintptr(unsafe.Pointer(&mem[0]))
	_ = unix.Ftruncate(fd, 0) // the rings' file may not shrink
	var all sync.WaitGroup
	for i := range 50 {
		rng := rand.New(rand.NewPCG(3, uint64(i)))
		all.Go(func() {
			runtime.LockOSThread()
			for range 200 {
				off := uintptr(rng.IntN(16 * page))
				switch n := rng.IntN(10); {
				case n == 0:
					_, _, _ = unix.Syscall(unix.SYS_MUNMAP, at+off&^uintptr(page-1), uintptr(page), 0)
				case n == 1:
					_, _, _ = unix.Syscall6(unix.SYS_MMAP, at+off&^uintptr(page-1), uintptr(page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED, 1<<64-1, 0)
				case n < 5:
					b := make([]byte, 8+4*rng.IntN(40))
					for i := range b {
						b[i] = byte(rng.Uint32())
					}
					(&abi.CmdHdr{Command: abi.Command(rng.IntN(48)), InWords: uint16(len(b) / 4), OutWords: uint16(rng.IntN(64))}).Put(b)
					if len(b) >= 16 {
						binary.NativeEndian.PutUint64(b[8:], uint64(at+off))
					}
					_, _ = unix.Write([]int{fd, cm, nl, async}[rng.IntN(4)], b)
				case n < 7:
					_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), 0xc0181b01, at+off)
				case n < 8:
					_, _, _ = unix.Syscall(unix.SYS_SENDTO, uintptr(nl), at+off, uintptr(rng.IntN(1<<17)))
				default:
					_, _, _ = unix.Syscall6(unix.SYS_OPENAT, 1<<64-100, at+off, 0, 0, 0, 0)
				}
			}
		})
	}
	all.Wait()
	say("done")
}

// crowd has many threads wait for events.
func crowd() {
	fd, err := unix.Open("/dev/infiniband/rdma_cm", unix.O_RDWR|unix.O_CLOEXEC, 0)
	say(err)
	debug.SetMaxThreads(20_000)
	get := make([]byte, abi.UCMHdrSize+abi.UCMGetEventSize)
	(&abi.UCMHdr{Cmd: abi.UCMCmdGetEvent, In: abi.UCMGetEventSize, Out: abi.UCMEventRespSize}).Put(get)
	(&abi.UCMGetEvent{Response: uint64(uintptr(unsafe.Pointer(&response)))}).Put(get[abi.UCMHdrSize:])
	n, _ := strconv.Atoi(os.Args[1])
	var begun sync.WaitGroup
	for range n {
		begun.Add(1)
		go func() {
			begun.Done()
			_, _ = unix.Write(fd, get)
		}()
	}
	begun.Wait()
	say("wait")
	hear()
}

// churn makes objects until it is killed.
func churn() {
	say("begins")
	for {
		everything()
	}
}

// rounds does the same once for each line that it hears.
func rounds() {
	for say("begins"); hear() != ""; say("done") {
		everything()
	}
}

// everything opens a file of each kind, makes objects, and closes all.
func everything() {
	fd, async := openDevice()
	channel := createChannel(fd)
	succeed(fd, abi.CmdAllocPD, &abi.AllocPD{}, abi.AllocPDSize, abi.AllocPDRespSize)
	succeed(fd, abi.CmdCreateCQ, &abi.CreateCQ{CQE: 16, CompChannel: int32(channel)}, abi.CreateCQSize, abi.CreateCQRespSize+abi.RXECreateCQRespSize)
	cm, _ := unix.Open("/dev/infiniband/rdma_cm", unix.O_RDWR, 0)
	nl, _ := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_RDMA)
	list, _ := unix.Open("/sys/class/infiniband", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for _, f := range []int{async, channel, fd, cm, nl, list} {
		unix.Close(f)
	}
}

// duplicate rings the doorbell of a queue pair by a number that is not held,
// and then writes a command there.
func duplicate() {
	fd, _ := openDevice()
	pd := binary.NativeEndian.Uint32(succeed(fd, abi.CmdAllocPD, &abi.AllocPD{}, abi.AllocPDSize, abi.AllocPDRespSize))
	cq := createCQ(fd, -1, 1)
	resp := succeed(fd, abi.CmdCreateQP, &abi.CreateQP{PDHandle: pd, SendCQHandle: cq, RecvCQHandle: cq, MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1,
		QPType: abi.QPTRC}, abi.CreateQPSize, abi.CreateQPRespSize+abi.RXECreateQPRespSize)
	say("made")
	hear()
	low, _ := unix.Dup(fd)
	bell := &abi.PostSend{QPHandle: binary.NativeEndian.Uint32(resp), WQESize: 56}
	for range 3 {
		say(command(low, abi.CmdPostSend, bell, abi.PostSendSize, make([]byte, abi.PostSendRespSize)))
	}
	say(command(low, abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pd}, abi.DeallocPDSize, nil))
	say(command(low, abi.CmdPostSend, bell, abi.PostSendSize, make([]byte, abi.PostSendRespSize)))
	hear()
}

// stays registers memory, and calls execve in vain.
func stays() {
	fd, _ := openDevice()
	pd := binary.NativeEndian.Uint32(succeed(fd, abi.CmdAllocPD, &abi.AllocPD{}, abi.AllocPDSize, abi.AllocPDRespSize))
	mem, _ := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	copy(mem, "still there")
	at := uint64(uintptr(unsafe.Pointer(&mem[0])))
	succeed(fd, abi.CmdRegMR, &abi.RegMR{Start: at, Length: uint64(len(mem)), HCAVA: at, PDHandle: pd}, abi.RegMRSize, abi.RegMRRespSize)
	err := unix.Exec("/nowhere", []string{"none"}, nil)
	succeed(fd, abi.CmdAllocPD, &abi.AllocPD{}, abi.AllocPDSize, abi.AllocPDRespSize)
	say(err)
	hear()
}

// reuse has an event file go on by a duplicate, while its number is the next
// one's.
func reuse() {
	fd, _ := openDevice()
	first := createChannel(fd)
	dup, _ := unix.Dup(first)
	unix.Close(first)
	second := createChannel(fd)
	createCQ(fd, dup, 1)
	createCQ(fd, second, 2)
	say(first == second)
	hear()
	var b [8]byte
	n, err := unix.Read(dup, b[:])
	say(n, err, binary.NativeEndian.Uint64(b[:]))
	var full []int
	for {
		f, err := unix.Open("/dev/infiniband/uverbs0", unix.O_RDWR, 0)
		if err != nil {
			say(err, len(full) < Window.High-Window.Low)
			break
		}
		full = append(full, f)
	}
}
