//go:build linux && (amd64 || arm64)

package supervise

import (
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/emu"
)

// pipe is the write end of a pipe of packets whose read end the program has:
// reads, polls, edge-triggered epoll, signals and threads are Linux's own. The
// watcher tells when the last reader has gone.
type pipe struct {
	*file

	mu  sync.Mutex
	end int // guarded by mu: the write end, -1 when it is closed
}

// make makes the pipe and returns its read end.
func (p *pipe) make(f *file) (given int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_DIRECT); err != nil {
		return 0, err
	}
	if err := unix.SetNonblock(ends[1], true); err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return 0, err
	}
	p.file, p.end = f, ends[1]
	return ends[0], nil
}

// put writes a packet, if there is room.
func (p *pipe) put(packet []byte) bool {
	for {
		_, err := unix.Write(p.end, packet)
		if err != unix.EINTR {
			return err == nil
		}
	}
}

// drain takes all packets out, by a read end that is there meanwhile, and gives
// them to keep.
func (p *pipe) drain(keep func(packet []byte)) {
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(p.end), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for {
		b := make([]byte, 64) // more than any has
		n, err := unix.Read(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		keep(b[:n])
	}
}

func (p *pipe) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end >= 0 {
		p.program.process.kernel.watch.remove(p.end)
		unix.Close(p.end)
		p.end = -1
	}
}

// events is an event file's pipe (emu.EventSink). Each event is a packet.
type events struct {
	pipe
	full bool // guarded by mu: the watcher waits for room
}

var _ emu.EventSink = (*events)(nil)

func makeEvents(f *file) (*events, int, error) {
	e := new(events)
	given, err := e.make(f)
	if err != nil {
		return nil, 0, err
	}
	f.program.process.kernel.watch.add(e.end, 0, e.changed)
	return e, given, nil
}

// changed is called when the readers have gone, or there is room again.
func (e *events) changed(what uint32) {
	if what&unix.EPOLLERR != 0 {
		e.goes()
		return
	}
	e.mu.Lock()
	e.full = false
	e.watch(0)
	e.mu.Unlock()
	if open := e.open.Load(); open != nil {
		(*open).(interface{ Refill() }).Refill()
	}
}

// watch has the watcher look for what, and for the readers' end. Preconditions:
// mu is held.
func (e *events) watch(what uint32) {
	if e.end >= 0 {
		e.program.process.kernel.watch.modify(e.end, what)
	}
}

// Put implements emu.EventSink.
func (e *events) Put(event []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.end >= 0 && e.put(event) {
		return true
	}
	if !e.full {
		e.full = true
		e.watch(unix.EPOLLOUT)
	}
	return false
}

// Withdraw implements emu.EventSink.
func (e *events) Withdraw(event []byte) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.end < 0 {
		return 0
	}
	var others [][]byte
	e.drain(func(packet []byte) {
		if string(packet) == string(event) {
			n++
		} else {
			others = append(others, packet)
		}
	})
	for _, packet := range others {
		e.put(packet)
	}
	return n
}

// End implements emu.EventSink: readers find the end behind the last event. In
// Linux it is EIO. The file goes here and now, since nothing tells any more
// when the readers have gone.
func (e *events) End() {
	e.shut()
	e.goes()
}

// manager is the pipe of an open rdma_cm. It holds a packet for each event that
// waits, as long as there is room, and no program reads it.
type manager struct{ pipe }

func makeManager(f *file) (*manager, int, error) {
	m := new(manager)
	given, err := m.make(f)
	if err != nil {
		return nil, 0, err
	}
	f.program.process.kernel.watch.add(m.end, 0, func(uint32) { m.goes() })
	return m, given, nil
}

// Ready implements emu.HostFile.
func (m *manager) Ready(ready bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.end < 0:
	case ready:
		m.put([]byte{1})
	default:
		m.drain(func([]byte) {})
	}
}
