package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

func (t *rdmaTool) statistic() *cobra.Command {
	show := t.command("show [link DEV[/PORT]]", "Show hardware counters", statisticShow)
	show.Aliases = []string{"list"}
	mode := t.command("mode [supported] [link DEV[/PORT]]", "List the optional counters that are switched on, or all there are", statisticMode)
	mode.Example = "  rdmashim statistic mode\n  rdmashim statistic mode supported link rxe0/1 -j"
	set := t.command("set link DEV/PORT optional-counters NAME[,NAME]…", "Switch on these optional counters, and all others off", statisticSet)
	set.Example = "  sudo rdmashim statistic set link mlx5_0/1 optional-counters cc_rx_ce_pkts"
	unset := t.command("unset link DEV/PORT optional-counters", "Switch all optional counters off", statisticUnset)
	unset.Example = "  sudo rdmashim statistic unset link mlx5_0/1 optional-counters"
	return t.object("statistic", "Show and set the counters of the kernel's RDMA links",
		"statistic shows and sets the counters of the kernel's RDMA links in iproute2's words.", statisticShow,
		show, t.statisticQP(), t.statisticMR(), mode, set, unset)
}

func statisticShow(c *rdmaCall, args []string) error {
	w := words{"statistic show", args}
	// "statistic show mr", as iproute2 has it.
	if len(args) > 0 && args[0] == "mr" {
		return statisticMRShow(c, args[1:])
	}
	ports, devices, err := c.statLinks(&w)
	if err != nil {
		return err
	}
	rows := make([]row, len(ports))
	for i, p := range ports {
		counters, err := c.m.Counters(c.ctx, devices[i], p.Port)
		if err != nil {
			return err
		}
		rows[i] = linkPort(&p)
		c.counters(&rows[i], counters)
	}
	return c.print(rows)
}

// linkPort begins a row about a port that has no ifindex.
func linkPort(p *netlinkmgr.Port) row {
	var r row
	r.add(field{"ifname", p.Device, "link " + p.Device + "/"}, field{"port", p.Port, fmt.Sprintf("%d ", p.Port)})
	return r
}

// counters adds counters, one to a line if that is asked for.
func (c *rdmaCall) counters(r *row, list []netlinkmgr.Counter) {
	for _, n := range list {
		f := keyed(n.Name, n.Value)
		if c.pretty {
			f.text = "\n    " + f.text
		}
		r.add(f)
	}
}

// statLinks reads [link DEV[/PORT]], the rest of a line.
func (c *rdmaCall) statLinks(w *words) ([]netlinkmgr.Port, []netlinkmgr.Device, error) {
	spec := portSpec{all: true}
	if len(w.rest) > 0 {
		word, err := w.after("link", "the link, DEV or DEV/PORT,")
		if err != nil {
			return nil, nil, err
		}
		if spec, err = parsePortSpec(word); err != nil {
			return nil, nil, err
		}
	}
	if err := w.end(); err != nil {
		return nil, nil, err
	}
	return c.ports(spec)
}

// statLink reads link DEV/PORT, which something is to be set on.
func (c *rdmaCall) statLink(w *words) (netlinkmgr.Device, uint32, error) {
	var none netlinkmgr.Device
	word, err := w.after("link", "the link, DEV/PORT,")
	if err != nil {
		return none, 0, err
	}
	spec, err := parsePortSpec(word)
	if err != nil {
		return none, 0, err
	}
	if spec.port == 0 {
		return none, 0, usagef("%s: %q names no port; write DEV/PORT", w.cmd, word)
	}
	d, err := c.m.Device(c.ctx, spec.dev)
	if err == nil && spec.port > d.Ports {
		err = usagef("%s has no port %d; it has %d", d.Name, spec.port, d.Ports)
	}
	return d, spec.port, err
}
