package uapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

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
	sum  uint64 // of the values that it added to its word of this server
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
		if err != nil && err != errRefused {
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
	config := QPConfig{SendDepth: 16, Inline: 64, Timeout: soakTimeout, Retry: soakRetry, MTU: 256 << c.r.IntN(5)}
	var err error
	if c.qp, err = c.me.CreateQPWith(config); err != nil {
		return err
	}
	config.SendDepth, config.SRQ, config.RecvCQ = 0, c.peer.shared.srq, c.peer.shared.cq
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
	if c.r.IntN(100) == 0 || wrs[0].Op == OpSendImm && c.r.IntN(20) == 0 {
		c.kill(c.me)
		c.tally(func(n *stackCount) { n.clientKills++ })
	}
	// Virtual time: much more than any client may take.
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
	if late := time.Since(died) - soakWait - soakSlack; late > 0 && StatusOf(err) == WCRetryExcErr {
		c.failf("the server was gone for %v until that was noticed, allowed are %v", time.Since(died), soakWait)
	}
}

// round does one operation, and compares its outcome.
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
	const half = 32 << 10 // less than the bytes before the word
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

// errRefused ends a connection that the client had refused.
var errRefused = errors.New("refused")

// send sends messages to the receives that the server's queue pairs share. The
// last one may be longer than a receive, which ends the connection.
func (c *stackClient) send() error {
	q, long := c.peer.shared, c.r.IntN(16) == 0
	var wrs []WR
	for range 1 + c.r.IntN(soakBurst) {
		n := 1 + c.r.IntN(soakReceive)
		wr := c.request(OpSendImm, len(wrs)*2*soakReceive, n, bytes.Repeat([]byte{byte(c.r.Uint32())}, n))
		wr.Imm = c.r.Uint32()
		wrs = append(wrs, wr)
	}
	if last := &wrs[len(wrs)-1]; long {
		last.SGE[0].Length = soakReceive + 1 + uint64(c.r.IntN(soakReceive))
	}
	came := q.begin(c.pqp, len(wrs))
	err := c.do(wrs)
	if long && StatusOf(err) == WCRemInvReqErr {
		err = errRefused
	} else if long && err == nil {
		c.failf("a message of %d bytes was taken into a receive of %d", wrs[len(wrs)-1].SGE[0].Length, soakReceive)
	} else if err != nil {
		return err
	}
	last := WRID(-1)
	for i := range wrs {
		select {
		case w := <-came:
			if w.WRID <= last {
				c.failf("shared receive %d completes after %d", w.WRID, last)
			}
			last = w.WRID
			c.compare(&wrs[i], &w, long && i == len(wrs)-1)
		case <-q.gone:
			return syscall.ESRCH
		case <-time.After(time.Second): // virtual
			c.failf("a message is acknowledged, but its receive does not complete")
		}
	}
	c.tally(func(n *stackCount) { n.sends += uint64(len(wrs)) })
	return err
}

// compare holds a message against its receive's completion and bytes, and gives
// the receive's memory back.
func (c *stackClient) compare(wr *WR, w *WC, long bool) {
	q := c.peer.shared
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.place[w.WRID]
	q.give(w.WRID, at)
	if long {
		if w.Status != WCLocLenErr {
			c.failf("a message is longer than its receive, which completes as %v", w)
		}
		c.tally(func(n *stackCount) { n.tooLong++ })
		return
	}
	n := wr.SGE[0].Length
	switch {
	case w.Err() != nil || w.Imm != wr.Imm || w.ByteLen != n:
		c.failf("sent were %d bytes and %#x, and came as %v", n, wr.Imm, w)
	case !bytes.Equal(c.peer.buf[at:at+n], c.me.buf[wr.SGE[0].Offset:][:n]):
		c.failf("SEND brought other bytes")
	}
}

// excuse fails the soak unless a process was killed and the error is one of
// those that a killed process causes.
func (c *stackClient) excuse(err error) {
	mine, theirs := !c.me.death().IsZero(), !c.peer.death().IsZero()
	if !mine && !theirs {
		c.failf("%v, but nobody was killed", err)
	}
	for _, known := range []error{syscall.ESRCH, syscall.EBADF, syscall.EIO, syscall.EINVAL} {
		if errors.Is(err, known) {
			return
		}
	}
	if slices.Contains([]Status{WCRetryExcErr, WCRemAccessErr, WCRemOpErr, WCWRFlushErr}, StatusOf(err)) {
		return
	}
	c.failf("an unexpected error after a kill: %v", err)
}

// leave takes the connection down on each side that still lives.
func (c *stackClient) leave() {
	if c.peer.death().IsZero() && c.pqp != 0 {
		if err := c.peer.DestroyQP(c.pqp); err != nil && c.peer.death().IsZero() && !errors.Is(err, syscall.EBADF) {
			c.failf("destroy the server's queue pair: %v", err)
		}
		c.peer.shared.end(c.pqp)
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
