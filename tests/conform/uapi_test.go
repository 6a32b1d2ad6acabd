//go:build linux || darwin

package conform

import (
	"context"
	"fmt"
	"time"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

const uapiAll = uapi.AccessLocalWrite | uapi.AccessRemoteWrite | uapi.AccessRemoteRead | uapi.AccessRemoteAtomic

// handles is one side of a connection over the handle API.
type handles struct {
	*uapi.Device
	r    *rig
	name string
	qp   uapi.QP
	mr   uapi.MR
	buf  []byte
	info uapi.MRInfo
}

// uapiOpen opens a side's device.
func (r *rig) uapiOpen(side int) *uapi.Device {
	d := must.Get(uapi.Open(r.sys.uapi[side], uapi.OpenConfig{}))(r)
	r.Cleanup(func() {
		if err := d.Close(); err != nil {
			r.Errorf("closing %s: %v", r.sys.uapi[side], err)
		}
	})
	return d
}

// patient is a configuration whose peer has nine seconds to answer.
func patient() uapi.QPConfig {
	return uapi.QPConfig{SendDepth: 16, RecvDepth: 16, Timeout: time.Second, MinRNRTimer: 10 * time.Microsecond}
}

func (r *rig) newHandles(name string, d *uapi.Device, config uapi.QPConfig) *handles {
	h := &handles{Device: d, r: r, name: name, buf: make([]byte, 64<<10)}
	h.mr = must.Get(d.RegMRWith(h.buf, uapi.MRConfig{Access: uapiAll, PD: config.PD}))(r)
	h.info = must.Get(d.QueryMR(h.mr))(r)
	h.qp = must.Get(d.CreateQPWith(config))(r)
	return h
}

// uapiEnds makes a side each, not connected.
func (r *rig) uapiEnds(config uapi.QPConfig) (a, b *handles) {
	return r.newHandles("a", r.uapiOpen(0), config), r.newHandles("b", r.uapiOpen(1), config)
}

func (r *rig) uapiPair(config uapi.QPConfig) (a, b *handles) {
	a, b = r.uapiEnds(config)
	r.join(a, b)
	return a, b
}

// join connects two sides to each other.
func (r *rig) join(a, b *handles) {
	x := must.Get(a.LocalEndpoint(a.qp))(r)
	y := must.Get(b.LocalEndpoint(b.qp))(r)
	r.must(a.ConnectQP(a.qp, y))
	r.must(b.ConnectQP(b.qp, x))
}

// posted is for requests that must be possible to post.
func (h *handles) posted(_ uapi.WRID, err error) {
	h.r.must(err)
}

// write does a WRITE of 8 bytes to a peer.
func (h *handles) write(peer *handles) {
	h.posted(h.PostWrite(h.qp, h.mr, 0, peer.info.Addr, peer.info.RKey, 8))
	h.next(1)
}

// sayPosted adds how a post ended.
func (h *handles) sayPosted(what string) func(uapi.WRID, error) {
	return func(id uapi.WRID, err error) {
		if err != nil {
			h.r.say("%s %s: %d, %s", h.name, what, id, errText(err))
			return
		}
		h.r.say("%s %s: id %d", h.name, what, id)
	}
}

// next waits for n completions of the queue pair's queue and adds them.
func (h *handles) next(n int) []uapi.WC {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	wcs := make([]uapi.WC, n)
	got := 0
	var err error
	for got < n && err == nil {
		var m int
		m, err = h.WaitCQ(ctx, h.qp, wcs[got:])
		got += max(m, 0)
	}
	for _, wc := range wcs[:got] {
		h.r.say("%s %d: %s", h.name, wc.WRID, handleText(&wc))
	}
	if err != nil {
		h.r.say("%s: %d of %d completions, then %s", h.name, got, n, errText(err))
	}
	return wcs[:got]
}

func handleText(wc *uapi.WC) string {
	text := fmt.Sprintf("%s %v", wc.Status.Name(), wc.Opcode)
	if wc.Status != uapi.WCSuccess {
		return text
	}
	text += fmt.Sprintf(" %d bytes", wc.ByteLen)
	if wc.Flags&uapi.WCWithImm != 0 {
		text += fmt.Sprintf(" imm %#08x", wc.Imm)
	}
	if wc.Flags&uapi.WCWithInv != 0 {
		text += " invalidated"
	}
	return text
}

func (h *handles) sayInfo() {
	h.r.say("%s state: %v", h.name, must.Get(h.QueryQP(h.qp))(h.r).State)
}
