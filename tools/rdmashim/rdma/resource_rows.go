package rdma

import (
	"context"
	"fmt"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// portRow begins the row of an object that belongs to a port.
func portRow(d netlinkmgr.Device, port *uint32) row {
	r := row{hidden: map[string]string{"ported": "yes"}}
	r.add(field{"ifindex", d.Index, ""}, field{"ifname", d.Name, ""})
	if port == nil {
		r.add(field{text: "link " + d.Name + "/- "})
	} else {
		r.add(field{"port", *port, fmt.Sprintf("link %s/%d ", d.Name, *port)})
	}
	return r
}

// deviceRow begins the row of an object that belongs to a device.
func deviceRow(d netlinkmgr.Device) row {
	var r row
	r.add(field{"ifindex", d.Index, ""}, field{"ifname", d.Name, "dev " + d.Name + " "})
	return r
}

// maker adds the object's maker and, with the details asked for twice, what its
// driver tells.
func (c *call) maker(r *row, o netlinkmgr.Owner, driver nldev.DriverAttrs) {
	if !o.Kernel {
		r.add(keyed("pid", o.PID))
	}
	if o.Comm != "" {
		f := keyed("comm", o.Comm)
		if o.Kernel {
			f.text = "comm [" + o.Comm + "] "
		}
		r.add(f)
	}
	c.driver(r, driver)
}

func (c *call) driver(r *row, driver nldev.DriverAttrs) {
	if c.details < 2 || len(driver) == 0 {
		return
	}
	if c.pretty && !c.json {
		r.add(field{text: "\n    "})
	}
	for _, a := range driver {
		f := keyed("drv_"+a.Key, a.Value)
		if a.Hex {
			f.text = fmt.Sprintf("%s 0x%x ", f.key, a.Value)
		}
		r.add(f)
	}
}

// rowsOf makes a row of each object of a device. It begins as deviceRow's.
func rowsOf[T any](
	c *call, d netlinkmgr.Device,
	list func(context.Context, netlinkmgr.Device) ([]T, error), fill func(*row, T),
) ([]row, error) {
	objects, err := list(c.ctx, d)
	rows := make([]row, len(objects))
	for i, o := range objects {
		rows[i] = deviceRow(d)
		fill(&rows[i], o)
	}
	return rows, err
}

func qpRows(c *call, d netlinkmgr.Device) ([]row, error) {
	return rowsOf(c, d, c.m.QPs, func(r *row, q netlinkmgr.QP) {
		*r = portRow(d, q.Port)
		r.add(keyed("lqpn", q.LQPN), some("rqpn", q.RQPN), keyed("type", q.Type))
		if q.Subtype != "" && q.Type.String() == "DRIVER" {
			r.add(keyed("subtype", q.Subtype))
		}
		r.add(keyed("state", q.State), some("rq-psn", q.RQPSN), keyed("sq-psn", q.SQPSN), some("path-mig-state", q.PathMig), some("pdn", q.PDN))
		c.maker(r, q.Owner, q.DriverExt)
	})
}

func cqRows(c *call, d netlinkmgr.Device) ([]row, error) {
	return rowsOf(c, d, c.m.CQs, func(r *row, q netlinkmgr.CQ) {
		r.add(some("cqn", q.CQN), keyed("cqe", q.CQE), keyed("users", q.Users), some("poll-ctx", q.PollCtx))
		if q.AdaptiveMod != nil {
			r.add(onOff("adaptive-moderation", *q.AdaptiveMod))
		}
		r.add(some("ctxn", q.CtxN))
		c.maker(r, q.Owner, q.DriverExt)
	})
}

func mrRows(c *call, d netlinkmgr.Device) ([]row, error) {
	return rowsOf(c, d, c.m.MRs, func(r *row, m netlinkmgr.MR) {
		r.add(some("mrn", m.MRN), someHex("rkey", m.RKey), someHex("lkey", m.LKey))
		if m.IOVA != nil {
			r.add(hexed("iova", *m.IOVA))
		}
		r.add(keyed("mrlen", m.Length), some("pdn", m.PDN))
		c.maker(r, m.Owner, m.DriverExt)
	})
}

func pdRows(c *call, d netlinkmgr.Device) ([]row, error) {
	return rowsOf(c, d, c.m.PDs, func(r *row, p netlinkmgr.PD) {
		r.add(some("pdn", p.PDN), someHex("local_dma_lkey", p.LocalDMALKey), keyed("users", p.Users), someHex("unsafe_global_rkey", p.UnsafeGlobalRKey), some("ctxn", p.CtxN))
		c.maker(r, p.Owner, p.DriverExt)
	})
}

func cmidRows(c *call, d netlinkmgr.Device) ([]row, error) {
	return rowsOf(c, d, c.m.CMIDs, func(r *row, m netlinkmgr.CMID) {
		*r = portRow(d, m.Port)
		r.add(some("cm-idn", m.CMIDN), some("lqpn", m.LQPN), some("qp-type", m.QPType), keyed("state", m.State), keyed("ps", m.PortSpace))
		c.maker(r, m.Owner, nil)
		r.address("src", m.Src)
		r.address("dst", m.Dst)
		c.driver(r, m.DriverExt)
	})
}

func ctxRows(c *call, d netlinkmgr.Device) ([]row, error) {
	return rowsOf(c, d, c.m.Contexts, func(r *row, x netlinkmgr.Context) {
		r.add(keyed("ctxn", x.CtxN))
		c.maker(r, x.Owner, x.DriverExt)
	})
}

func srqRows(c *call, d netlinkmgr.Device) ([]row, error) {
	return rowsOf(c, d, c.m.SRQs, func(r *row, q netlinkmgr.SRQ) {
		r.add(keyed("srqn", q.SRQN), keyed("type", q.Type))
		var numbers []string
		for _, n := range q.QPs {
			if n.QPN != nil {
				numbers = append(numbers, fmt.Sprint(*n.QPN))
			} else {
				numbers = append(numbers, fmt.Sprintf("%d-%d", n.Min, n.Max))
			}
		}
		if len(numbers) > 0 {
			r.add(field{"lqpn", numbers, "lqpn " + strings.Join(numbers, ",") + " "})
		}
		r.add(some("pdn", q.PDN), some("cqn", q.CQN))
		c.maker(r, q.Owner, q.DriverExt)
	})
}
