package rdma

import (
	"fmt"
	"strings"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/netlinkmgr/nldev"
)

// linkRow begins the row of an object that belongs to a port.
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

// owner adds who made the object.
func (r *row) owner(o netlinkmgr.Owner) {
	if !o.Kernel {
		r.add(keyed("pid", o.PID))
	}
	if o.Comm == "" {
		return
	}
	f := keyed("comm", o.Comm)
	if o.Kernel {
		f.text = "comm [" + o.Comm + "] "
	}
	r.add(f)
}

// driver adds what the driver tells, with the details asked for twice.
func (c *call) driver(r *row, list nldev.DriverAttrs) {
	if c.details < 2 || len(list) == 0 {
		return
	}
	if c.pretty && !c.json {
		r.add(field{text: "\n    "})
	}
	for _, a := range list {
		f := keyed("drv_"+a.Key, a.Value)
		if a.Hex {
			f.text = fmt.Sprintf("%s 0x%x ", f.key, a.Value)
		}
		r.add(f)
	}
}

// rows makes a row of each object.
func rowsOf[T any](list []T, err error, make func(T) row) ([]row, error) {
	var rows []row
	for _, o := range list {
		rows = append(rows, make(o))
	}
	return rows, err
}

func qpRows(c *call, d netlinkmgr.Device) ([]row, error) {
	list, err := c.m.QPs(c.ctx, d)
	return rowsOf(list, err, func(q netlinkmgr.QP) row {
		r := portRow(d, q.Port)
		r.add(keyed("lqpn", q.LQPN))
		r.optional("rqpn", q.RQPN)
		r.add(keyed("type", q.Type))
		if q.Subtype != "" && q.Type.String() == "DRIVER" {
			r.add(keyed("subtype", q.Subtype))
		}
		r.add(keyed("state", q.State))
		r.optional("rq-psn", q.RQPSN)
		r.add(keyed("sq-psn", q.SQPSN))
		if q.PathMig != nil {
			r.add(keyed("path-mig-state", *q.PathMig))
		}
		r.optional("pdn", q.PDN)
		r.owner(q.Owner)
		c.driver(&r, q.DriverExt)
		return r
	})
}

func cqRows(c *call, d netlinkmgr.Device) ([]row, error) {
	list, err := c.m.CQs(c.ctx, d)
	return rowsOf(list, err, func(q netlinkmgr.CQ) row {
		r := deviceRow(d)
		r.optional("cqn", q.CQN)
		r.add(keyed("cqe", q.CQE), keyed("users", q.Users))
		if q.PollCtx != nil {
			r.add(keyed("poll-ctx", *q.PollCtx))
		}
		if q.AdaptiveMod != nil {
			r.add(onOff("adaptive-moderation", *q.AdaptiveMod))
		}
		r.optional("ctxn", q.CtxN)
		r.owner(q.Owner)
		c.driver(&r, q.DriverExt)
		return r
	})
}

func mrRows(c *call, d netlinkmgr.Device) ([]row, error) {
	list, err := c.m.MRs(c.ctx, d)
	return rowsOf(list, err, func(m netlinkmgr.MR) row {
		r := deviceRow(d)
		r.optional("mrn", m.MRN)
		r.optionalHex("rkey", m.RKey)
		r.optionalHex("lkey", m.LKey)
		if m.IOVA != nil {
			r.add(hexed("iova", *m.IOVA))
		}
		r.add(keyed("mrlen", m.Length))
		r.optional("pdn", m.PDN)
		r.owner(m.Owner)
		c.driver(&r, m.DriverExt)
		return r
	})
}

func pdRows(c *call, d netlinkmgr.Device) ([]row, error) {
	list, err := c.m.PDs(c.ctx, d)
	return rowsOf(list, err, func(p netlinkmgr.PD) row {
		r := deviceRow(d)
		r.optional("pdn", p.PDN)
		r.optionalHex("local_dma_lkey", p.LocalDMALKey)
		r.add(keyed("users", p.Users))
		r.optionalHex("unsafe_global_rkey", p.UnsafeGlobalRKey)
		r.optional("ctxn", p.CtxN)
		r.owner(p.Owner)
		c.driver(&r, p.DriverExt)
		return r
	})
}

func cmidRows(c *call, d netlinkmgr.Device) ([]row, error) {
	list, err := c.m.CMIDs(c.ctx, d)
	return rowsOf(list, err, func(m netlinkmgr.CMID) row {
		r := portRow(d, m.Port)
		r.optional("cm-idn", m.CMIDN)
		r.optional("lqpn", m.LQPN)
		if m.QPType != nil {
			r.add(keyed("qp-type", *m.QPType))
		}
		r.add(keyed("state", m.State), keyed("ps", m.PortSpace))
		r.owner(m.Owner)
		r.address("src", m.Src)
		r.address("dst", m.Dst)
		c.driver(&r, m.DriverExt)
		return r
	})
}

func ctxRows(c *call, d netlinkmgr.Device) ([]row, error) {
	list, err := c.m.Contexts(c.ctx, d)
	return rowsOf(list, err, func(x netlinkmgr.Context) row {
		r := deviceRow(d)
		r.add(keyed("ctxn", x.CtxN))
		r.owner(x.Owner)
		c.driver(&r, x.DriverExt)
		return r
	})
}

func srqRows(c *call, d netlinkmgr.Device) ([]row, error) {
	list, err := c.m.SRQs(c.ctx, d)
	return rowsOf(list, err, func(q netlinkmgr.SRQ) row {
		r := deviceRow(d)
		r.add(keyed("srqn", q.SRQN), keyed("type", q.Type))
		if len(q.QPs) > 0 {
			var words []string
			for _, n := range q.QPs {
				if n.QPN != nil {
					words = append(words, fmt.Sprint(*n.QPN))
				} else {
					words = append(words, fmt.Sprintf("%d-%d", n.Min, n.Max))
				}
			}
			r.add(field{"lqpn", words, "lqpn " + strings.Join(words, ",") + " "})
		}
		r.optional("pdn", q.PDN)
		r.optional("cqn", q.CQN)
		r.owner(q.Owner)
		c.driver(&r, q.DriverExt)
		return r
	})
}
