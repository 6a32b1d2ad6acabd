package rdma

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// resourceKind is a kind of objects, with the words that its filters may name.
type resourceKind struct {
	name    string
	rows    func(*call, netlinkmgr.Device) ([]row, error)
	filters []filterWord
}

// resourceKinds are in the order in which iproute2 tries them on a shortened
// word.
var resourceKinds = []resourceKind{
	{"qp", qpRows, filterWords("lqpn# rqpn# pid# sq-psn# rq-psn# type path-mig-state state pdn#")},
	{"cm_id", cmidRows, filterWords("lqpn# qp-type state ps pid# src-addr src-port# dst-addr dst-port# cm-idn#")},
	{"cq", cqRows, filterWords("users# poll-ctx pid# cqn# ctxn#")},
	{"mr", mrRows, filterWords("rkey lkey mrlen# pid# mrn# pdn#")},
	{"pd", pdRows, filterWords("users# pid# ctxn# pdn#")},
	{"ctx", ctxRows, filterWords("pid# ctxn#")},
	{"srq", srqRows, filterWords("pid# srqn# type pdn# cqn#")},
}

func (t *tool) resource() *cobra.Command {
	show := t.command("show [DEV | {qp|cm_id|cq|mr|pd|ctx|srq} [link DEV[/PORT]] [FILTER VALUE]…]", "Count the objects of devices, or list those of a kind",
		"  rdmashim resource show rxe0\n  rdmashim resource show qp link rxe0/1 state RTS\n  rdmashim resource show mr -j", resourceShow)
	show.Aliases = []string{"list"}
	show.Long = `show counts the objects of each device, or lists the objects of a kind with the
process that made them. A FILTER is one of the keys that are shown (pid, state,
lqpn …); VALUE is a word, or numbers and ranges such as 17,20-29.`
	return t.object("resource", "Show the objects of the kernel's RDMA devices, and whose they are",
		"resource shows in iproute2's words the objects that processes and the kernel\nmade on the kernel's RDMA devices.", "  rdmashim resource\n  rdmashim resource show qp", resourceShow, show)
}

func resourceShow(c *call, args []string) error {
	if len(args) == 0 {
		return c.summary("")
	}
	// A device's name goes before a kind's, as in iproute2.
	if len(args) == 1 {
		if _, err := c.m.Device(c.ctx, args[0]); err == nil {
			return c.summary(args[0])
		}
	}
	i := slices.IndexFunc(resourceKinds, func(k resourceKind) bool {
		return args[0] != "" && strings.HasPrefix(k.name, args[0])
	})
	if i < 0 {
		return cli.Usagef("resource show: %q is neither a device nor one of qp, cm_id, cq, mr, pd, ctx, srq", args[0])
	}
	kind := resourceKinds[i]
	spec, filters, err := parseFilters("resource show "+kind.name, args[1:], kind.filters)
	if err != nil {
		return err
	}
	devices, err := c.devices(spec.dev)
	if err != nil {
		return err
	}
	var rows []row
	for _, d := range devices {
		if spec.port > d.Ports {
			return cli.Usagef("%s has no port %d; it has %d", d.Name, spec.port, d.Ports)
		}
		list, err := kind.rows(c, d)
		if err != nil {
			return err
		}
		rows = append(rows, byPort(list)...)
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return !r.onPort(spec) || !filters.match(&r) })
	return c.print(rows)
}

// byPort puts objects of no port first, then those of port 1 …: iproute2 asks
// port by port.
func byPort(rows []row) []row {
	slices.SortStableFunc(rows, func(a, b row) int { return int(a.port()) - int(b.port()) })
	return rows
}

// port is the row's port; 0 when it has none.
func (r *row) port() uint32 {
	for _, f := range r.fields {
		if f.key == "port" {
			n, _ := f.value.(uint32)
			return n
		}
	}
	return 0
}

// onPort says whether a row is meant. Objects that have no port at all (CQ,
// MR, PD, ctx) belong to the whole device.
func (r *row) onPort(s portSpec) bool {
	return s.all || r.hidden["ported"] == "" || r.port() == s.port
}

func (c *call) summary(name string) error {
	devices, err := c.devices(name)
	if err != nil {
		return err
	}
	rows := make([]row, len(devices))
	for i, d := range devices {
		counts, err := c.m.Summary(c.ctx, d)
		if err != nil {
			return err
		}
		rows[i].add(field{"ifindex", d.Index, fmt.Sprintf("%d: ", d.Index)}, field{"ifname", d.Name, d.Name + ": "})
		for _, n := range counts {
			rows[i].add(keyed(n.Name, n.Value))
		}
	}
	return c.print(rows)
}
