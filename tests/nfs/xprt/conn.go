package xprt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
)

// Sizes in bytes, and numbers, of a connection.
const (
	credits = 32      // calls that a client may have outstanding
	inline  = 4 << 10 // the longest message that is sent
	payload = 1 << 20 // the longest data of a call or a reply
	longest = payload + 64<<10
	headAt  = longest + 64<<10  // where a message lies that is sent
	sends   = inline/16 + 2     // segments of a message, which a call may move
	wholly  = headAt + 2*inline // bytes of data
)

// Work request ids. That of a receive is its place.
const (
	silent = 1<<32 + iota // completes only when it fails
	waited                // the goroutine waits for it
)

// conn is the server's end of a connection. One goroutine uses it.
type conn struct {
	device   *uapi.Device
	pd       uapi.PD
	qp       uapi.QP
	inMR     uapi.MR
	dataMR   uapi.MR
	in       []byte    // 2*credits messages
	data     []byte    // what moves by RDMA, and the message that is sent
	inline   int       // the longest message that the client takes
	records  net.Conn  // to the RPC server
	received []uapi.WC // receives that have completed
}

// open makes memory and queue pair, in a domain of the client's own, and posts
// the receives.
func (c *conn) open(r *uapi.Request) (err error) {
	c.device, c.inline = r.Device, inlineOf(r.PrivateData)
	if c.pd, err = c.device.CreatePD(); err != nil {
		return err
	}
	c.in, c.data = make([]byte, 2*credits*inline), make([]byte, wholly)
	own := uapi.MRConfig{Access: uapi.AccessLocalWrite, PD: c.pd}
	if c.inMR, err = c.device.RegMRWith(c.in, own); err != nil {
		return err
	}
	if c.dataMR, err = c.device.RegMRWith(c.data, own); err != nil {
		return err
	}
	c.qp, err = r.CreateQPWith(uapi.QPConfig{PD: c.pd, SendDepth: 2 * sends, RecvDepth: 2 * credits, Access: uapi.None})
	for place := 0; place < 2*credits && err == nil; place++ {
		err = c.receive(place)
	}
	return err
}

// close gives back what open made.
func (c *conn) close() {
	for _, give := range []func() error{
		func() error { return c.device.DestroyQP(c.qp) }, func() error { return c.device.DeregMR(c.inMR) },
		func() error { return c.device.DeregMR(c.dataMR) }, func() error { return c.device.DestroyPD(c.pd) },
	} {
		_ = give() // what open did not come to
	}
}

func (c *conn) receive(place int) error {
	_, err := c.device.Post(c.qp, []uapi.WR{{
		ID: uapi.WRID(place), Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: c.inMR, Offset: uint64(place * inline), Length: inline}},
	}})
	return err
}

// post posts requests and waits until the last one has been carried out.
func (c *conn) post(ctx context.Context, wrs ...uapi.WR) error {
	last := &wrs[len(wrs)-1]
	last.ID, last.Flags = waited, uapi.Signaled
	if _, err := c.device.Post(c.qp, wrs); err != nil {
		return err
	}
	for {
		done, err := c.wait(ctx)
		if done || err != nil {
			return err
		}
	}
}

// wait waits for completions, keeps receives and reports whether the request
// that is waited for was among them.
func (c *conn) wait(ctx context.Context) (done bool, err error) {
	var wcs [16]uapi.WC
	n, err := c.device.WaitCQ(ctx, c.qp, wcs[:])
	for i := range max(n, 0) {
		switch wc := &wcs[i]; {
		case wc.Err() != nil:
			return false, wc.Err()
		case wc.WRID == waited:
			done = true
		default:
			c.received = append(c.received, *wc)
		}
	}
	return done, err
}

// next returns the client's next message.
func (c *conn) next(ctx context.Context) ([]byte, error) {
	for len(c.received) == 0 {
		if _, err := c.wait(ctx); err != nil {
			return nil, err
		}
	}
	wc := c.received[0]
	c.received = c.received[1:]
	place := int(wc.WRID)
	msg := append([]byte(nil), c.in[place*inline:][:wc.ByteLen]...)
	return msg, c.receive(place)
}

// serve carries calls to the RPC server, and its replies back, until the
// connection ends. A message that cannot be carried is answered with an error.
func (c *conn) serve(ctx context.Context) error {
	for {
		sent, err := c.next(ctx)
		if err != nil {
			return err
		}
		h, rest, err := parse(sent)
		if err == nil && h.proc <= procNoMsg {
			err = c.exchange(ctx, &h, rest)
		}
		var no *refusal
		if errors.As(err, &no) && len(sent) >= 4 { // it has a number
			err = c.send(ctx, no.message(h.xid), nil)
		}
		if err != nil {
			return err
		}
	}
}

// exchange carries a call to the RPC server, and its reply back.
func (c *conn) exchange(ctx context.Context, h *header, rest []byte) error {
	call, err := c.call(ctx, h, rest)
	if err != nil {
		return err
	}
	if _, err := c.records.Write(append(be.AppendUint32(nil, uint32(len(call))|lastFragment), call...)); err != nil {
		return err
	}
	reply, err := readRecord(c.records)
	if err != nil {
		return err
	}
	return c.answer(ctx, h, reply)
}

// lastFragment marks the length of a record's last fragment (RFC 5531, 11).
const lastFragment = 1 << 31

// readRecord reads a record of the RPC server.
func readRecord(r io.Reader) (record []byte, err error) {
	for {
		var mark [4]byte
		if _, err := io.ReadFull(r, mark[:]); err != nil {
			return nil, err
		}
		n := be.Uint32(mark[:])
		last := n&lastFragment != 0
		if n &^= lastFragment; int(n) > longest-len(record) {
			return nil, fmt.Errorf("record of more than %d bytes: %w", longest, syscall.EMSGSIZE)
		}
		at := len(record)
		record = append(record, make([]byte, n)...)
		if _, err := io.ReadFull(r, record[at:]); err != nil || last {
			return record, err
		}
	}
}
