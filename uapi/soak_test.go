package uapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/rnic"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
)

// The stack's soak: random programs on whole stacks (this API, the client, the
// emulated kernel, the soft RNIC, an in-memory network with faults) in a bubble of
// virtual time, with processes that are killed at any moment and started again.
//
// A program is a client that connects to a server, does a few requests at a time,
// and compares everything. It may fail only if its server, or itself, was killed,
// and within the time that a silent peer is believed in. What a killed process had
// registered must never change again. rnic/link/sim/soak looks at the protocol
// more closely, packet by packet; this looks at all layers together.
var (
	soakN    = flag.Int("stack.n", 0, "how many seeds the stack's soak runs; 0: 150, fewer with -short or -race")
	soakSeed = flag.Uint64("stack.seed", 0, "run this seed only")
)

// The time for which clients believe in a silent server, and what is added for the
// network's delay.
const (
	soakTimeout = 12 // 16.8 ms
	soakRetry   = 3
	soakWait    = (soakRetry + 1) * 4096 << soakTimeout * time.Nanosecond
	soakSlack   = 30 * time.Millisecond
	soakSlot    = 64 << 10 // of a server's memory, for one client
	soakClients = 4
	soakHosts   = 3
)

type stackSoak struct {
	t     *testing.T
	seed  uint64
	net   *sim.Network
	hosts []*stackHost
	stop  chan struct{} // closed: no more kills

	mu    sync.Mutex
	dead  []*stackProcess // guarded by mu
	count stackCount      // guarded by mu
}

// stackCount is what a soak reached.
type stackCount struct {
	seeds, writes, reads, atomics, sends, connects, failures, serverKills, clientKills, packets, lost uint64
}

func (a *stackCount) add(b *stackCount) {
	for _, p := range [][2]*uint64{{&a.seeds, &b.seeds}, {&a.writes, &b.writes}, {&a.reads, &b.reads}, {&a.atomics, &b.atomics}, {&a.sends, &b.sends},
		{&a.connects, &b.connects}, {&a.failures, &b.failures}, {&a.serverKills, &b.serverKills}, {&a.clientKills, &b.clientKills},
		{&a.packets, &b.packets}, {&a.lost, &b.lost}} {
		*p[0] += *p[1]
	}
}

// stackHost is a machine with a device; a server runs on it, and clients may.
type stackHost struct {
	machine *emu.Machine
	device  *rnic.Device
	station *station

	mu     sync.Mutex
	server *stackProcess // guarded by mu
}

// stackProcess is a process: a context, and as a server memory for all clients.
type stackProcess struct {
	*Context
	host *stackHost
	proc *emu.Process
	buf  []byte
	mr   MR
	info MRInfo

	mu     sync.Mutex
	died   time.Time // guarded by mu: when its end began; zero: it lives
	corpse []byte    // guarded by mu: what its memory was when it was dead
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
	name := fmt.Sprintf("soft%d", i)
	d, err := rnic.New(rnic.Config{Name: name, Link: link.WithFaults(l, faults)})
	s.check(err)
	h := &stackHost{machine: emu.New(emu.Options{}), device: d}
	s.check(h.machine.Register(d))
	port, err := d.QueryPort(1)
	s.check(err)
	h.station = &station{spec: deviceSpec{kind: kindSim}, addr: d.Addr(), name: name, netDev: d.NetDev(), mtu: port.ActiveMTU.Bytes()}
	return h
}

// launch starts a process on a host.
func (s *stackSoak) launch(h *stackHost, size int) *stackProcess {
	p := &stackProcess{host: h, proc: h.machine.Process("soak"), buf: make([]byte, size)}
	c, err := newContext(kshim.Kernel(p.proc), h.station, newOpenConfig(nil))
	s.check(err)
	c.release = func() error { p.proc.Exit(); return nil }
	p.Context = c
	p.mr, err = c.RegMR(p.buf, AccessLocalWrite|AccessRemoteWrite|AccessRemoteRead|AccessRemoteAtomic)
	s.check(err)
	p.info, err = c.QueryMR(p.mr)
	s.check(err)
	return p
}

// kill ends a process without asking it, and takes down what its memory was then.
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
	f(&s.count)
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
		h.server = s.launch(h, soakClients*soakSlot)
	}
	defer func() {
		for _, h := range s.hosts {
			if err := h.machine.Unregister(h.station.name); err != nil {
				s.t.Error(err)
			}
		}
	}()
	var clients, killers sync.WaitGroup
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
		p := s.launch(h, soakClients*soakSlot)
		h.mu.Lock()
		h.server = p
		h.mu.Unlock()
	}
}

// end closes everything and looks for what is left or was touched.
func (s *stackSoak) end() {
	for _, h := range s.hosts {
		if open := h.server.OpenHandles(); len(open) != 1 { // its region
			s.failf("a server ends with %q", open)
		}
		s.check(h.server.Close())
	}
	time.Sleep(time.Second) // what is under way arrives
	var sent, lost, doubled, known, state uint64
	for _, h := range s.hosts {
		for _, c := range h.device.Counters() {
			switch c.Name {
			case "sent_pkts":
				sent += c.Value
			case "fault_loss":
				lost += c.Value
			case "fault_dup":
				doubled += c.Value
			case "drop_state":
				state += c.Value
			case "rcvd_pkts", "drop_icrc", "drop_qpn", "drop_peer", "drop_pkey", "drop_service", "drop_malformed", "drop_opcode", "drop_queue_full", "drop_send_unreach":
				known += c.Value
			}
		}
	}
	// A packet for a queue pair in RESET or INIT is counted by its state only.
	if n := sent - lost + doubled; n < known || n > known+state {
		s.failf("%d packets sent, %d lost, %d repeated, but %d received or dropped and %d dropped for a state", sent, lost, doubled, known, state)
	}
	for _, p := range s.dead {
		if !bytes.Equal(p.corpse, p.buf) {
			s.failf("memory of a process that was killed has changed")
		}
		_ = p.Close() // there is nothing behind it any more
	}
	s.count.seeds, s.count.packets, s.count.lost = 1, sent, lost
}

// TestStackSoak runs the seeds.
func TestStackSoak(t *testing.T) {
	n, from := *soakN, uint64(1)
	switch {
	case *soakSeed != 0:
		n, from = 1, *soakSeed
	case n == 0 && (testing.Short() || raceEnabled):
		n = 25
	case n == 0:
		n = 150
	}
	var total stackCount
	start := time.Now()
	for seed := from; seed < from+uint64(n) && !t.Failed(); seed++ {
		s := &stackSoak{seed: seed}
		synctest.Test(t, func(t *testing.T) {
			s.t = t
			s.run()
		})
		total.add(&s.count)
	}
	c := total
	fmt.Printf("soak: whole stacks: %.1f s for %d seeds, %d packets, %d lost, WRITE %d, READ %d, atomics %d, SEND %d, connections %d, failures %d, servers killed %d, clients killed %d\n",
		time.Since(start).Seconds(), c.seeds, c.packets, c.lost, c.writes, c.reads, c.atomics, c.sends, c.connects, c.failures, c.serverKills, c.clientKills)
	if t.Failed() || n < 25 {
		return
	}
	for _, v := range []uint64{c.packets, c.lost, c.writes, c.reads, c.atomics, c.sends, c.connects, c.failures, c.serverKills, c.clientKills} {
		if v == 0 {
			t.Error("something never happened")
		}
	}
}

// stackClient is a client program: one connection after another.
type stackClient struct {
	*stackSoak
	r    *rand.Rand
	slot uint64 // its part of every server's memory

	me   *stackProcess
	peer *stackProcess
	qp   QP // mine
	pqp  QP // the server's
	id   WRID
	sum  uint64 // of what it added to its word of this server
}

// live connects, works until something fails, and connects again.
func (c *stackClient) live() {
	for lives := 2 + c.r.IntN(3); lives > 0; lives-- {
		if c.me == nil {
			c.me = c.launch(c.hosts[c.r.IntN(len(c.hosts))], soakSlot)
		}
		err := c.connect()
		for rounds := 10 + c.r.IntN(40); err == nil && rounds > 0; rounds-- {
			err = c.round()
			c.pause()
		}
		if err != nil {
			c.excuse(err)
			c.tally(func(n *stackCount) { n.failures++ })
		}
		c.leave()
	}
	if c.me != nil {
		c.check(c.me.Close())
	}
}

func (c *stackClient) pause() {
	if c.r.IntN(3) == 0 {
		time.Sleep(time.Duration(c.r.IntN(5000)) * time.Microsecond)
	}
}

// connect makes a queue pair on both sides.
func (c *stackClient) connect() error {
	h := c.hosts[c.r.IntN(len(c.hosts))]
	h.mu.Lock()
	c.peer = h.server
	h.mu.Unlock()
	c.qp, c.pqp, c.sum = 0, 0, 0
	config := QPConfig{SendDepth: 16, RecvDepth: 16, Inline: 64, Timeout: soakTimeout, Retry: soakRetry, MTU: 256 << c.r.IntN(5)}
	var err error
	if c.qp, err = c.me.CreateQPWith(config); err != nil {
		return err
	}
	if c.pqp, err = c.peer.CreateQPWith(config); err != nil {
		return err
	}
	mine, err := c.me.LocalEndpoint(c.qp)
	if err != nil {
		return err
	}
	theirs, err := c.peer.LocalEndpoint(c.pqp)
	if err != nil {
		return err
	}
	if err := c.peer.ConnectQP(c.pqp, mine); err != nil {
		return err
	}
	if err := c.me.ConnectQP(c.qp, theirs); err != nil {
		return err
	}
	c.tally(func(n *stackCount) { n.connects++ })
	return c.reset()
}

// reset writes the word that atomics will add to.
func (c *stackClient) reset() error {
	return c.do([]WR{c.request(OpWrite, wordAt, 8, make([]byte, 8))})
}

// The last 8 bytes of a slot are for atomics, the rest for everything else.
const wordAt = soakSlot - 8

// request is a request at the same place of both sides' slots, with this data.
func (c *stackClient) request(op Op, at, n int, data []byte) WR {
	copy(c.me.buf[at:at+n], data)
	c.id++
	return WR{ID: c.id, Op: op, Flags: Signaled, SGE: []SGE{{MR: c.me.mr, Offset: uint64(at), Length: uint64(n)}},
		RemoteAddr: c.peer.info.Addr + c.slot + uint64(at), RKey: c.peer.info.RKey}
}

// do posts requests and waits for their completions, in order.
func (c *stackClient) do(wrs []WR) error {
	posted := time.Now()
	if n, err := c.me.Post(c.qp, wrs); err != nil {
		return fmt.Errorf("post %d of %d: %w", n, len(wrs), err)
	}
	if c.r.IntN(100) == 0 {
		c.kill(c.me)
		c.tally(func(n *stackCount) { n.clientKills++ })
	}
	// Virtual time: much more than anybody may take.
	ctx, cancel := context.WithTimeout(context.Background(), 100*soakWait)
	defer cancel()
	wc := make([]WC, 4)
	for next := 0; next < len(wrs); {
		n, err := c.me.WaitCQ(ctx, c.qp, wc)
		if ctx.Err() != nil {
			c.failf("no completion comes of request %d", wrs[next].ID)
		}
		if err != nil {
			return err
		}
		for i := range wc[:n] {
			if wc[i].WRID != wrs[next].ID {
				c.failf("completion of %d, next is %d", wc[i].WRID, wrs[next].ID)
			}
			if err := wc[i].Err(); err != nil {
				c.inTime(posted, err)
				return err
			}
			next++
		}
	}
	return nil
}

// inTime: a silent peer is given up in its time.
func (c *stackClient) inTime(posted time.Time, err error) {
	died := c.peer.death()
	if died.IsZero() || died.Before(posted) {
		died = posted
	}
	if late := time.Since(died) - soakWait - soakSlack; late > 0 && errors.Is(err, WCRetryExcErr) {
		c.failf("the server was gone for %v until that was noticed, allowed are %v", time.Since(died), soakWait)
	}
}

// round does one thing, and compares what came of it.
func (c *stackClient) round() error {
	switch c.r.IntN(4) {
	case 0, 1:
		return c.writeAndRead()
	case 2:
		return c.add()
	}
	return c.send()
}

// writeAndRead writes pieces, reads them back into other memory, and compares.
func (c *stackClient) writeAndRead() error {
	const half = 32 << 10 // less than what precedes the word
	data := make([]byte, half-8)
	for i := 0; i < len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], c.r.Uint64())
	}
	var writes, reads []WR
	at := 0
	for len(writes) < 1+c.r.IntN(8) {
		n := c.r.IntN(4000)
		writes = append(writes, c.request(OpWrite, at, n, data[at:at+n]))
		if n <= 64 && c.r.IntN(2) == 0 {
			writes[len(writes)-1].Flags |= Inline
		}
		at += n
	}
	total := at
	for at = 0; at < total; {
		n := min(total-at, 1+c.r.IntN(8000))
		wr := c.request(OpRead, at, n, data[at:at+n])
		wr.SGE[0].Offset += half
		reads = append(reads, wr)
		at += n
	}
	if err := c.do(append(writes, reads[:min(len(reads), 16-len(writes))]...)); err != nil {
		return err
	}
	if rest := reads[min(len(reads), 16-len(writes)):]; len(rest) > 0 {
		if err := c.do(rest[:min(len(rest), 16)]); err != nil {
			return err
		}
		reads = reads[:16-len(writes)+min(len(rest), 16)]
	}
	got := 0
	for _, wr := range reads {
		got += int(wr.SGE[0].Length)
	}
	if !bytes.Equal(c.me.buf[half:half+got], data[:got]) {
		c.failf("READ brought other bytes than were written")
	}
	c.tally(func(n *stackCount) { n.writes += uint64(len(writes)); n.reads += uint64(len(reads)) })
	return nil
}

// add adds to the slot's word, some times at once.
func (c *stackClient) add() error {
	var wrs []WR
	for range 1 + c.r.IntN(4) {
		wr := c.request(OpFetchAdd, 8*len(wrs), 8, nil)
		wr.RemoteAddr, wr.CompareAdd = c.peer.info.Addr+c.slot+wordAt, uint64(1+c.r.IntN(1000))
		wrs = append(wrs, wr)
	}
	if err := c.do(wrs); err != nil {
		return err
	}
	for i, wr := range wrs {
		if was := binary.NativeEndian.Uint64(c.me.buf[8*i:]); was != c.sum {
			c.failf("FETCH_ADD found %d, there was %d: done twice, or not at all", was, c.sum)
		}
		c.sum += wr.CompareAdd
	}
	c.tally(func(n *stackCount) { n.atomics += uint64(len(wrs)) })
	return nil
}

// send sends messages, of which the receives are late sometimes.
func (c *stackClient) send() error {
	n := 1 + c.r.IntN(5000)
	wr := c.request(OpSendImm, 0, n, bytes.Repeat([]byte{byte(c.r.Uint32())}, n))
	wr.Imm = c.r.Uint32()
	at := c.slot + uint64(8192)
	result := make(chan error, 1)
	late := time.Duration(c.r.IntN(2)*c.r.IntN(3000)) * time.Microsecond
	go func() {
		time.Sleep(late)
		_, err := c.peer.PostRecv(c.pqp, c.peer.mr, at, 8192)
		if err != nil {
			result <- err
			return
		}
		wc := make([]WC, 1)
		if _, err = c.peer.WaitCQ(context.Background(), c.pqp, wc); err == nil {
			err = wc[0].Err()
		}
		if err == nil && (wc[0].Imm != wr.Imm || int(wc[0].ByteLen) != n) {
			err = fmt.Errorf("received %d bytes and %#x, sent were %d and %#x", wc[0].ByteLen, wc[0].Imm, n, wr.Imm)
		}
		result <- err
	}()
	err := c.do([]WR{wr})
	if err != nil && c.peer.death().IsZero() {
		_ = c.peer.DestroyQP(c.pqp) // the receiver waits for nothing
	}
	if e := <-result; err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(c.peer.buf[at:at+uint64(n)], c.me.buf[:n]) {
		c.failf("SEND brought other bytes")
	}
	c.tally(func(n *stackCount) { n.sends++ })
	return nil
}

// excuse: an error needs somebody who was killed, and must be one of those that a
// killed process leaves behind.
func (c *stackClient) excuse(err error) {
	mine, theirs := !c.me.death().IsZero(), !c.peer.death().IsZero()
	if !mine && !theirs {
		c.failf("%v, but nobody was killed", err)
	}
	for _, known := range []error{WCRetryExcErr, WCRemAccessErr, WCRemOpErr, WCWRFlushErr, syscall.ESRCH, syscall.EBADF, syscall.EIO, syscall.EINVAL} {
		if errors.Is(err, known) {
			return
		}
	}
	c.failf("an unexpected error after a kill: %v", err)
}

// leave takes the connection down on whatever side still lives.
func (c *stackClient) leave() {
	if c.peer.death().IsZero() && c.pqp != 0 {
		if err := c.peer.DestroyQP(c.pqp); err != nil && c.peer.death().IsZero() && !errors.Is(err, syscall.EBADF) {
			c.failf("destroy the server's queue pair: %v", err)
		}
	}
	if !c.me.death().IsZero() {
		_ = c.me.Close()
		c.me = nil
		return
	}
	if c.qp != 0 {
		c.check(c.me.DestroyQP(c.qp))
	}
}
