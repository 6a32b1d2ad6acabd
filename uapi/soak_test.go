package uapi

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/rnic"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// The stack's soak: random programs on whole stacks (this API, the client, the
// emulated kernel, the soft RNIC, an in-memory network with faults) in a bubble
// of virtual time, with processes that are killed at any moment and started
// again.
//
// A program is a client that connects to a server, does a few requests at a
// time, and compares everything. It may fail only if its server, or itself, was
// killed, and within the time that a silent peer is believed in. A killed
// process's registered memory must never change again. tests/soak looks at the
// protocol more closely, packet by packet; this looks at all layers together.
var (
	soakN    = flag.Int("stack.n", 0, "how many seeds the stack's soak runs; 0: 60, all of the 150 with tools/test --all, fewer with -short or -race")
	soakSeed = flag.Uint64("stack.seed", 0, "run this seed only")
)

// The time for which clients believe in a silent server, and the allowance for
// the network's delay.
const (
	soakTimeout = 4096 << 12 * time.Nanosecond // 16.8 ms
	soakRetry   = 3
	soakWait    = (soakRetry + 1) * soakTimeout
	soakSlack   = 30 * time.Millisecond
	soakSlot    = 64 << 10 // of a server's memory, for one client
	soakClients = 4
	soakHosts   = 3
)

type stackSoak struct {
	t         *testing.T
	seed      uint64
	net       *sim.Network
	hosts     []*stackHost
	datagrams []*stackDatagrams // one a host
	stop      chan struct{}     // closed: no more kills

	mu    sync.Mutex
	dead  []*stackProcess // guarded by mu
	count *stackCount     // guarded by mu; of all seeds
}

// stackCount counts the events that the soak reached.
type stackCount struct {
	seeds, writes, reads, atomics, sends, datagrams, grouped, due, connects, failures, serverKills, clientKills, packets, lost, limits, resizes, tooLong, halfUsed uint64
}

// stackHost is a machine with a device; a server runs on it, and clients may.
type stackHost struct {
	machine *emu.Machine
	device  *rnic.Device
	about   *device.Device
	faults  link.Faults
	groups  groupTap

	mu     sync.Mutex
	server *stackProcess // guarded by mu
}

// stackProcess is a process: a device, and as a server memory for all clients
// and receives that they share.
type stackProcess struct {
	*Device
	host *stackHost
	proc *emu.Process
	buf  []byte
	mr   MR
	info MRInfo

	shared *stackReceives // a server's

	mu     sync.Mutex
	died   time.Time // guarded by mu: when its end began; zero: it lives
	corpse []byte    // guarded by mu: its memory at its death
}

func (p *stackProcess) death() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.died
}

// start boots a host.
func (s *stackSoak) start(i int, faults link.Faults) *stackHost {
	l, err := s.net.Attach(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), RoCEPort))
	s.check(err)
	h := &stackHost{machine: emu.New(), faults: faults}
	l.SetTap(&h.groups)
	name := fmt.Sprintf("soft%d", i)
	d, err := rnic.New(rnic.Config{Name: name, Link: link.WithFaults(l, faults)})
	s.check(err)
	h.device = d
	s.check(h.machine.Register(d))
	port, err := d.QueryPort(1)
	s.check(err)
	h.about = &device.Device{Spec: device.Spec{Kind: device.Sim}, Addr: d.Addr(), Name: name, NetDev: d.NetDev(), MTU: port.ActiveMTU.Bytes()}
	return h
}

// launch starts a process on a host.
func (s *stackSoak) launch(h *stackHost, size int) *stackProcess {
	p := &stackProcess{host: h, proc: h.machine.Process("soak"), buf: make([]byte, size)}
	d, err := newDevice(kshim.Kernel(p.proc), h.about, OpenConfig{})
	s.check(err)
	d.release = func() error { p.proc.Exit(); return nil }
	p.Device = d
	p.mr, err = d.RegMR(p.buf, AccessLocalWrite|AccessRemoteWrite|AccessRemoteRead|AccessRemoteAtomic)
	s.check(err)
	p.info, err = d.QueryMR(p.mr)
	s.check(err)
	return p
}

// kill ends a process without asking it, and takes a copy of its memory.
func (s *stackSoak) kill(p *stackProcess) {
	p.mu.Lock()
	p.died = time.Now()
	p.mu.Unlock()
	s.check(p.host.machine.Kill(p.proc))
	<-p.proc.Done()
	p.mu.Lock()
	p.corpse = bytes.Clone(p.buf)
	p.mu.Unlock()
	s.mu.Lock()
	s.dead = append(s.dead, p)
	s.mu.Unlock()
}

func (s *stackSoak) check(err error) {
	if err != nil {
		s.failf("%v", err)
	}
}

func (s *stackSoak) failf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("seed %d: "+format+"\n\treplay: go test ./uapi -run TestStackSoak -stack.seed=%d", append(append([]any{s.seed}, args...), s.seed)...)
	s.t.FailNow()
}

func (s *stackSoak) tally(f func(*stackCount)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.count)
}

// run plays a seed.
func (s *stackSoak) run() {
	r := rand.New(rand.NewPCG(s.seed, 0))
	s.net = sim.NewNetwork(sim.Options{})
	s.stop = make(chan struct{})
	share := func(top float64) float64 { return top * r.Float64() * float64(r.IntN(2)) }
	for i := range soakHosts {
		h := s.start(i, link.Faults{
			Loss: share(0.05), Reorder: share(0.1), Dup: share(0.05), Corrupt: share(0.02),
			Delay: time.Duration(20+r.IntN(1000)) * time.Microsecond, Seed: r.Uint64(),
		})
		s.hosts = append(s.hosts, h)
		h.server = s.serve(h, rand.New(rand.NewPCG(s.seed, uint64(i)+300)))
	}
	defer func() {
		for _, h := range s.hosts {
			if p := h.server; p != nil { // of a seed that failed, it may be at work
				p.shared.stop()
				p.shared.running.Wait()
			}
			if err := h.machine.Unregister(h.about.Name); err != nil {
				s.t.Error(err)
			}
		}
	}()
	for i := range soakHosts {
		s.datagrams = append(s.datagrams, s.newDatagrams(i, rand.New(rand.NewPCG(s.seed, uint64(i)+200))))
	}
	var clients, killers sync.WaitGroup
	for _, d := range s.datagrams {
		clients.Go(d.live)
	}
	for i := range soakClients {
		c := &stackClient{stackSoak: s, r: rand.New(rand.NewPCG(s.seed, uint64(i)+1)), slot: uint64(i) * soakSlot}
		clients.Go(c.live)
	}
	for i := range soakHosts {
		r := rand.New(rand.NewPCG(s.seed, uint64(i)+100))
		killers.Go(func() { s.killServer(s.hosts[i], r) })
	}
	clients.Wait()
	close(s.stop)
	killers.Wait()
	s.end()
}

// killServer kills a host's server now and then, and starts another one.
func (s *stackSoak) killServer(h *stackHost, r *rand.Rand) {
	for range r.IntN(4) {
		select {
		case <-s.stop:
			return
		case <-time.After(time.Duration(r.IntN(100_000)) * time.Microsecond):
		}
		h.mu.Lock()
		old := h.server
		h.mu.Unlock()
		s.kill(old)
		s.tally(func(c *stackCount) { c.serverKills++ })
		time.Sleep(time.Duration(r.IntN(2)*r.IntN(50)) * time.Millisecond)
		p := s.serve(h, rand.New(rand.NewPCG(r.Uint64(), 0)))
		h.mu.Lock()
		h.server = p
		h.mu.Unlock()
	}
}

// end closes everything and looks for leaks and for changed memory.
func (s *stackSoak) end() {
	for _, h := range s.hosts {
		h.server.shared.close()
		if open := h.server.OpenHandles(); len(open) != 1 { // its region
			s.failf("a server ends with %q", open)
		}
		s.check(h.server.Close())
	}
	time.Sleep(time.Second) // packets under way arrive
	var sent, lost, doubled, known, state, out, in uint64
	for _, h := range s.hosts {
		out += h.groups.out.Load()
		in += h.groups.in.Load()
		for name, n := range h.device.Counters() {
			switch name {
			case "sent_pkts":
				sent += n
			case "fault_loss":
				lost += n
			case "fault_dup":
				doubled += n
			case "drop_state":
				state += n
			case "rcvd_pkts", "drop_icrc", "drop_qpn", "drop_peer", "drop_pkey", "drop_service", "drop_malformed", "drop_opcode", "drop_queue_full", "drop_send_unreach":
				known += n
			}
		}
	}
	// A packet for a queue pair in RESET or INIT is counted by its state only.
	if n := sent - lost + doubled - out + in; n < known || n > known+state {
		s.failf("%d packets sent, %d lost, %d repeated, %d of them to groups, which were %d then, but %d received or dropped and %d dropped for a state", sent, lost, doubled, out, in, known, state)
	}
	for _, p := range s.dead {
		if !bytes.Equal(p.corpse, p.buf) {
			s.failf("memory of a process that was killed has changed")
		}
		_ = p.Close() // there is nothing behind it any more
	}
	s.tally(func(c *stackCount) {
		c.seeds, c.packets, c.lost = c.seeds+1, c.packets+sent, c.lost+lost
	})
}

// TestStackSoak runs the seeds.
func TestStackSoak(t *testing.T) {
	n, from := *soakN, uint64(1)
	switch {
	case *soakSeed != 0:
		n, from = 1, *soakSeed
	case n == 0 && (testing.Short() || amount.Race):
		n = 10
	case n == 0:
		n = amount.Of(60, 150)
	}
	var c stackCount
	start := time.Now()
	for seed := from; seed < from+uint64(n) && !t.Failed(); seed++ {
		s := &stackSoak{seed: seed, count: &c}
		synctest.Test(t, func(t *testing.T) {
			s.t = t
			s.run()
		})
	}
	fmt.Printf("soak: whole stacks: %.1f s for %d seeds, %d packets, %d lost, WRITE %d, READ %d, atomics %d, SEND %d (%d too long), datagrams %d (%d of a group, %d of them without excuse), connections %d, failures %d, servers killed %d, clients killed %d, limits of shared receives %d (%d used by half), completion queues resized %d\n",
		time.Since(start).Seconds(), c.seeds, c.packets, c.lost, c.writes, c.reads, c.atomics, c.sends, c.tooLong, c.datagrams, c.grouped, c.due, c.connects, c.failures, c.serverKills, c.clientKills, c.limits, c.halfUsed, c.resizes)
	if t.Failed() || n < 60 {
		return
	}
	for _, v := range []uint64{c.packets, c.lost, c.writes, c.reads, c.atomics, c.sends, c.datagrams, c.grouped, c.due, c.connects, c.failures, c.serverKills, c.clientKills, c.limits, c.resizes, c.tooLong} {
		if v == 0 {
			t.Error("something never happened")
		}
	}
}
