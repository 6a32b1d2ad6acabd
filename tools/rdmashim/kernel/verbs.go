package kernel

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/explain"
	"github.com/rdmashim/rdmashim/uapi"
)

// region is a buffer that is registered on a device.
type region struct {
	name string
	ctx  *uapi.Context
	mr   uapi.MR
	buf  []byte
}

// pair is a queue pair.
type pair struct {
	name string
	ctx  *uapi.Context
	qp   uapi.QP
}

var accessFlags = map[string]uapi.Access{
	"local_write": uapi.AccessLocalWrite, "remote_write": uapi.AccessRemoteWrite,
	"remote_read": uapi.AccessRemoteRead, "remote_atomic": uapi.AccessRemoteAtomic,
}

func (c *console) regMR(a *args) error {
	var access uapi.Access
	for _, word := range a.text[1:] {
		for word := range strings.SplitSeq(word, ",") {
			if accessFlags[word] == 0 {
				return fmt.Errorf("there is no access %q, but %s", word, strings.Join(keys(accessFlags), ","))
			}
			access |= accessFlags[word]
		}
	}
	name := a.text[0]
	if c.regions[name] != nil {
		return fmt.Errorf("there is a region %s; dereg_mr it, or take another name: %w", name, syscall.EEXIST)
	}
	ctx, err := c.context()
	if err != nil {
		return err
	}
	buf, err := uapi.Alloc(int(a.n[0]))
	if err != nil {
		return err
	}
	mr, err := ctx.RegMR(buf, access)
	if err != nil {
		return errors.Join(err, uapi.Free(buf))
	}
	c.regions[name] = &region{name, ctx, mr, buf}
	return c.queryMR(&args{mr: c.regions[name]})
}

func (c *console) deregMR(a *args) error {
	if err := a.mr.ctx.DeregMR(a.mr.mr); err != nil {
		return err
	}
	delete(c.regions, a.mr.name)
	return uapi.Free(a.mr.buf)
}

func (c *console) queryMR(a *args) error {
	i, err := a.mr.ctx.QueryMR(a.mr.mr)
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
	ctx, err := c.context()
	if err != nil {
		return err
	}
	qp, err := ctx.CreateQP(int(a.n[0]), int(a.n[1]))
	if err != nil {
		return err
	}
	c.made++
	p := &pair{fmt.Sprintf("qp%d", c.made), ctx, qp}
	c.pairs[p.name] = p
	return c.queryQP(&args{pairs: []*pair{p}})
}

func (c *console) destroyQP(a *args) error {
	maps.DeleteFunc(c.pairs, func(_ string, p *pair) bool { return p == a.pairs[0] })
	return a.pairs[0].ctx.DestroyQP(a.pairs[0].qp)
}

func (c *console) queryQP(a *args) error {
	p := a.pairs[0]
	i, err := p.ctx.QueryQP(p.qp)
	if err == nil {
		c.printf("%s: number %d, %v, %d sends, %d receives\n", p.name, uint32(p.qp), i.State, i.SendDepth, i.RecvDepth)
	}
	return err
}

func (c *console) connect(a *args) error {
	var ends [2]uapi.Endpoint
	for i, p := range a.pairs {
		var err error
		if ends[i], err = p.ctx.LocalEndpoint(p.qp); err != nil {
			return err
		}
	}
	for i, p := range a.pairs {
		if i == 1 && p == a.pairs[0] {
			break
		}
		if err := p.ctx.ConnectQP(p.qp, ends[1-i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *console) postWrite(a *args) error {
	p := a.pairs[0]
	return c.posted(p.ctx.PostWrite(p.qp, a.mr.mr, a.n[0], a.n[1], uint32(a.n[2]), a.n[3]))
}

func (c *console) postRead(a *args) error {
	p := a.pairs[0]
	return c.posted(p.ctx.PostRead(p.qp, a.mr.mr, a.n[0], a.n[1], uint32(a.n[2]), a.n[3]))
}

func (c *console) postSend(a *args) error {
	return c.posted(a.pairs[0].ctx.PostSend(a.pairs[0].qp, a.mr.mr, a.n[0]))
}

func (c *console) postRecv(a *args) error {
	return c.posted(a.pairs[0].ctx.PostRecv(a.pairs[0].qp, a.mr.mr, a.n[0], a.n[1]))
}

// posted prints the id of a request.
func (c *console) posted(id uapi.WRID, err error) error {
	if err == nil {
		c.printf("work request %d\n", id)
	}
	return err
}

// patience is how long poll_cq and wait_cq go on without a completion.
const patience = 10 * time.Second

func (c *console) pollCQ(a *args) error {
	p, want := a.pairs[0], int(a.number(0, 0))
	var wc [16]uapi.WC
	for got, end := 0, time.Now().Add(patience); ; {
		n, err := p.ctx.PollCQ(p.qp, wc[:])
		if err != nil {
			return err
		}
		c.completed(wc[:n])
		switch got += n; {
		case want == 0 && n == 0:
			c.printf("no completion\n")
			return nil
		case got >= want:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%d of %d completions came in %v: %w", got, want, patience, syscall.ETIMEDOUT)
		}
	}
}

func (c *console) waitCQ(a *args) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var wc [16]uapi.WC
	n, err := a.pairs[0].ctx.WaitCQ(ctx, a.pairs[0].qp, wc[:])
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no completion came in %v: %w", patience, syscall.ETIMEDOUT)
	}
	c.completed(wc[:max(n, 0)])
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
