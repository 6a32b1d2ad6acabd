package kernel

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/explain"
	"github.com/rdmashim/rdmashim/uapi"
)

// region is a buffer that is registered on a device.
type region struct {
	name   string
	device *uapi.Device
	mr     uapi.MR
	buf    []byte
}

// pair is a queue pair.
type pair struct {
	name   string
	device *uapi.Device
	qp     uapi.QP
}

var accessFlags = map[string]uapi.Access{
	"local_write": uapi.AccessLocalWrite, "remote_write": uapi.AccessRemoteWrite,
	"remote_read": uapi.AccessRemoteRead, "remote_atomic": uapi.AccessRemoteAtomic,
}

func (c *console) regMR(a *args) error {
	name, access := a.text[0], uapi.Access(0)
	if len(a.text) > 1 {
		for word := range strings.SplitSeq(a.text[1], ",") {
			if accessFlags[word] == 0 {
				return fmt.Errorf("there is no access %q, but %s", word, strings.Join(slices.Sorted(maps.Keys(accessFlags)), ","))
			}
			access |= accessFlags[word]
		}
	}
	if c.regions[name] != nil {
		return fmt.Errorf("there is a region %s; dereg_mr it, or take another name: %w", name, syscall.EEXIST)
	}
	d, err := c.context()
	if err != nil {
		return err
	}
	buf, err := uapi.Alloc(int(a.n[0]))
	if err != nil {
		return err
	}
	mr, err := d.RegMR(buf, access)
	if err != nil {
		return errors.Join(err, uapi.Free(buf))
	}
	r := &region{name, d, mr, buf}
	c.regions[name] = r
	return c.queryMR(&args{mr: r})
}

func (c *console) deregMR(a *args) error {
	if err := a.mr.device.DeregMR(a.mr.mr); err != nil {
		return err
	}
	delete(c.regions, a.mr.name)
	return uapi.Free(a.mr.buf)
}

func (c *console) queryMR(a *args) error {
	i, err := a.mr.device.QueryMR(a.mr.mr)
	if err == nil {
		c.printf("%s: %d bytes at %#x, lkey %#x, rkey %#x, %v\n", a.mr.name, i.Length, i.Addr, i.LKey, i.RKey, i.Access)
	}
	return err
}

func (c *console) fill(a *args) error {
	copy(a.mr.buf, strings.Join(a.text, " "))
	return nil
}

func (c *console) hexdump(a *args) error {
	rest := a.mr.buf[min(a.number(0, 0), uint64(len(a.mr.buf))):]
	c.printf("%s", hex.Dump(rest[:min(a.number(1, 64), uint64(len(rest)))]))
	return nil
}

func (c *console) createQP(a *args) error {
	d, err := c.context()
	if err != nil {
		return err
	}
	qp, err := d.CreateQP(int(a.n[0]), int(a.n[1]))
	if err != nil {
		return err
	}
	c.made++
	p := &pair{fmt.Sprintf("qp%d", c.made), d, qp}
	c.pairs[p.name] = p
	return c.queryQP(&args{pairs: []*pair{p}})
}

func (c *console) destroyQP(a *args) error {
	maps.DeleteFunc(c.pairs, func(_ string, p *pair) bool { return p == a.pairs[0] })
	return a.pairs[0].device.DestroyQP(a.pairs[0].qp)
}

func (c *console) queryQP(a *args) error {
	p := a.pairs[0]
	i, err := p.device.QueryQP(p.qp)
	if err == nil {
		c.printf("%s: number %d, %v, %d sends, %d receives\n", p.name, uint32(p.qp), i.State, i.SendDepth, i.RecvDepth)
	}
	return err
}

func (c *console) connect(a *args) error {
	x, y := a.pairs[0], a.pairs[1]
	here, err := x.device.LocalEndpoint(x.qp)
	there, peerErr := y.device.LocalEndpoint(y.qp)
	if err := errors.Join(err, peerErr); err != nil {
		return err
	}
	if err := x.device.ConnectQP(x.qp, there); err != nil || x == y {
		return err
	}
	return y.device.ConnectQP(y.qp, here)
}

func (c *console) postWrite(a *args) error {
	p := a.pairs[0]
	return c.posted(p.device.PostWrite(p.qp, a.mr.mr, a.n[0], a.n[1], uint32(a.n[2]), a.n[3]))
}

func (c *console) postRead(a *args) error {
	p := a.pairs[0]
	return c.posted(p.device.PostRead(p.qp, a.mr.mr, a.n[0], a.n[1], uint32(a.n[2]), a.n[3]))
}

func (c *console) postSend(a *args) error {
	return c.posted(a.pairs[0].device.PostSend(a.pairs[0].qp, a.mr.mr, a.n[0]))
}

func (c *console) postRecv(a *args) error {
	return c.posted(a.pairs[0].device.PostRecv(a.pairs[0].qp, a.mr.mr, a.n[0], a.n[1]))
}

// posted prints the id of a request.
func (c *console) posted(id uapi.WRID, err error) error {
	if err == nil {
		c.printf("work request %d\n", id)
	}
	return err
}

// patience is how long poll_cq waits for completions.
const patience = 10 * time.Second

func (c *console) pollCQ(a *args) error {
	p, want := a.pairs[0], int(a.number(0, 0))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var wc [16]uapi.WC
	n, err := p.device.PollCQ(p.qp, wc[:])
	c.completed(wc[:max(n, 0)])
	if err == nil && n == 0 && want == 0 {
		c.printf("no completion\n")
	}
	for got := n; err == nil && got < want; got += n {
		n, err = p.device.WaitCQ(ctx, p.qp, wc[:])
		c.completed(wc[:max(n, 0)])
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("fewer than %d completions came in %v: %w", want, patience, syscall.ETIMEDOUT)
	}
	return err
}

// completed prints completions, and of a failure its usual cause.
func (c *console) completed(list []uapi.WC) {
	for i := range list {
		c.printf("%v\n", &list[i])
		if list[i].Status != uapi.WCSuccess {
			for _, e := range explain.Find("status " + strconv.Itoa(int(list[i].Status))) {
				c.printf("  likely: %s\n", e.Causes[0])
			}
		}
	}
}
