package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// subcommand is a word below an object's command.
type subcommand struct {
	name string
	do   func(*rdmaCall, []string) error
}

// dispatch runs the command that a word, which may be shortened, stands for.
func dispatch(cmd string, list []subcommand) func(*rdmaCall, []string) error {
	return func(c *rdmaCall, args []string) error {
		if len(args) == 0 {
			return list[0].do(c, nil)
		}
		i := slices.IndexFunc(list, func(s subcommand) bool { return args[0] != "" && strings.HasPrefix(s.name, args[0]) })
		if i < 0 {
			var names []string
			for _, s := range list {
				names = append(names, s.name)
			}
			return usagef("%s: %q is none of %s", cmd, args[0], strings.Join(names, ", "))
		}
		return list[i].do(c, args[1:])
	}
}

func (t *rdmaTool) statisticQP() *cobra.Command {
	cmd := t.command("qp [show|mode|set|bind|unbind] …", "Show and bind counters of queue pairs", dispatch("statistic qp", []subcommand{
		{"show", qpCounterShow}, {"list", qpCounterShow}, {"mode", qpCounterMode}, {"set", qpCounterSet}, {"bind", qpCounterBind}, {"unbind", qpCounterUnbind},
	}))
	cmd.Long = `qp shows counters that queue pairs have, and says which have them:

    qp show [link DEV[/PORT]] [FILTER VALUE]…    FILTER: cntn, lqpn, pid, qp-type
    qp mode [link DEV[/PORT]]                    how queue pairs get counters
    qp set link DEV/PORT auto {type|pid|type,pid} on
    qp set link DEV/PORT auto off
    qp bind link DEV/PORT lqpn N [cntn N]        to a counter, or a new one
    qp unbind link DEV/PORT cntn N [lqpn N]      one queue pair, or all

rdma_rxe has no such counters: it shows none and binds none.`
	cmd.Example = "  rdmashim statistic qp mode\n  rdmashim statistic qp show link rxe0/1 -j"
	return cmd
}

func (t *rdmaTool) statisticMR() *cobra.Command {
	cmd := t.command("mr [show] [link DEV]", "Show the counters of memory regions", dispatch("statistic mr", []subcommand{{"show", statisticMRShow}, {"list", statisticMRShow}, {"link", func(c *rdmaCall, args []string) error {
		return statisticMRShow(c, append([]string{"link"}, args...))
	}}}))
	cmd.Example = "  rdmashim statistic mr show link rxe0"
	return cmd
}

var qpCounterFilters = filterWords("cntn# lqpn# pid# qp-type")

func qpCounterShow(c *rdmaCall, args []string) error {
	spec, filters, err := parseFilters("statistic qp show", args, qpCounterFilters)
	if err != nil {
		return err
	}
	ports, devices, err := c.ports(spec)
	if err != nil {
		return err
	}
	var rows []row
	for i, p := range ports {
		list, err := c.m.QPCounters(c.ctx, devices[i], p.Port)
		if err != nil {
			return err
		}
		for _, q := range list {
			// A counter has one number and many queue pairs: one that passes is enough.
			rest := slices.DeleteFunc(slices.Clone(filters), func(f filter) bool { return f.key == "lqpn" })
			r := c.qpCounterRow(devices[i], &q)
			if rest.match(&r) && filters.anyQP(q.QPs) {
				rows = append(rows, r)
			}
		}
	}
	return c.print(rows)
}

// anyQP says whether a filter for queue pairs, if there is one, lets one pass.
func (l filters) anyQP(list []uint32) bool {
	for _, f := range l {
		if f.key == "lqpn" && !slices.ContainsFunc(list, func(n uint32) bool { return f.match(strconv.Itoa(int(n))) }) {
			return false
		}
	}
	return true
}

func (c *rdmaCall) qpCounterRow(d netlinkmgr.Device, q *netlinkmgr.QPCounter) row {
	r := portRow(d, q.Port)
	r.add(keyed("cntn", q.ID))
	if q.Type != nil {
		r.add(field{"qp-type", *q.Type, fmt.Sprintf("qp-type %v ", *q.Type)})
	}
	r.owner(q.Owner)
	c.counters(&r, q.Counters)
	words := make([]string, len(q.QPs))
	for i, n := range q.QPs {
		words[i] = strconv.Itoa(int(n))
	}
	r.add(field{"lqpn", append([]uint32{}, q.QPs...), "\n    LQPN: <" + strings.Join(words, ",") + ">"})
	return r
}

func qpCounterMode(c *rdmaCall, args []string) error {
	w := words{"statistic qp mode", args}
	ports, devices, err := c.statLinks(&w)
	if err != nil {
		return err
	}
	rows := make([]row, len(ports))
	for i, p := range ports {
		mask, err := c.m.QPCounterMode(c.ctx, devices[i], p.Port)
		if err != nil {
			return err
		}
		n := p.Port
		rows[i] = portRow(devices[i], &n)
		rows[i].add(keyed("mode", mask.String()))
	}
	return c.print(rows)
}

func qpCounterSet(c *rdmaCall, args []string) error {
	check := words{"statistic qp set", args}
	if _, err := check.after("link", "the link, DEV/PORT,"); err != nil {
		return err
	}
	word, err := check.after("auto", "the criteria (type, pid), or off,")
	if err != nil {
		return err
	}
	var mask netlinkmgr.CounterMask
	if word != "off" {
		if mask, err = netlinkmgr.ParseCounterMask(word); err != nil {
			return usagef("%s: %w", check.cmd, err)
		}
		if err := check.keyword("on"); err != nil {
			return err
		}
	}
	if err := check.end(); err != nil {
		return err
	}
	d, port, err := c.statLink(&words{check.cmd, args})
	if err != nil {
		return err
	}
	return c.m.SetQPCounterMode(c.ctx, d, port, mask)
}

// number takes KEY N.
func (w *words) number(key string) (uint32, error) {
	word, err := w.after(key, "a number behind "+key)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(word, 10, 32)
	if err != nil {
		return 0, usagef("%s: %s %q is no number", w.cmd, key, word)
	}
	return uint32(n), nil
}

// pairAndCounter reads link DEV/PORT FIRST N [SECOND N].
func pairAndCounter(cmd string, args []string, first, second string) (one uint32, two *uint32, err error) {
	w := words{cmd, args}
	if _, err := w.after("link", "the link, DEV/PORT,"); err != nil {
		return 0, nil, err
	}
	if one, err = w.number(first); err != nil {
		return 0, nil, err
	}
	if len(w.rest) > 0 {
		n, err := w.number(second)
		if err != nil {
			return 0, nil, err
		}
		two = &n
	}
	return one, two, w.end()
}

func qpCounterBind(c *rdmaCall, args []string) error {
	const cmd = "statistic qp bind"
	lqpn, counter, err := pairAndCounter(cmd, args, "lqpn", "cntn")
	if err != nil {
		return err
	}
	d, port, err := c.statLink(&words{cmd, args})
	if err != nil {
		return err
	}
	return c.m.BindQP(c.ctx, d, port, lqpn, counter)
}

func qpCounterUnbind(c *rdmaCall, args []string) error {
	const cmd = "statistic qp unbind"
	counter, lqpn, err := pairAndCounter(cmd, args, "cntn", "lqpn")
	if err != nil {
		return err
	}
	d, port, err := c.statLink(&words{cmd, args})
	if err != nil {
		return err
	}
	if lqpn != nil {
		return c.m.UnbindQP(c.ctx, d, port, counter, *lqpn)
	}
	list, err := c.m.QPCounters(c.ctx, d, port)
	if err != nil {
		return err
	}
	for _, q := range list {
		if q.ID != counter {
			continue
		}
		for _, n := range q.QPs {
			if err := c.m.UnbindQP(c.ctx, d, port, counter, n); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s/%d has no counter %d", d.Name, port, counter)
}

func statisticMRShow(c *rdmaCall, args []string) error {
	spec, filters, err := parseFilters("statistic mr show", args, filterWords("mrn#"))
	if err != nil {
		return err
	}
	devices, err := c.devices(spec.dev)
	if err != nil {
		return err
	}
	var rows []row
	for _, d := range devices {
		regions, counters, err := c.m.MRCounters(c.ctx, d)
		if err != nil {
			return err
		}
		for i, mr := range regions {
			r := deviceRow(d)
			r.optional("mrn", mr.MRN)
			if filters.match(&r) {
				c.counters(&r, counters[i])
				rows = append(rows, r)
			}
		}
	}
	return c.print(rows)
}
