package rdma

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

func (t *tool) link() *cobra.Command {
	show := t.command("show [DEV[/PORT]]", "List links: the ports of RDMA devices", "  rdmashim link show\n  rdmashim link show rxe0/1 -d", linkShow)
	show.Aliases = []string{"list"}
	return t.object("link", "Show, add, delete and set up RDMA links of the kernel",
		`link shows, adds and deletes the kernel's RDMA links in iproute2's words, and
beyond them sets up a usable rxe link in one go (up) and explains the GID table
(gid).`,
		"  rdmashim link\n  rdmashim link up eth0\n  sudo rdmashim link add rxe0 type rxe netdev eth0", linkShow, show,
		t.command("add NAME type rxe netdev DEV", "Add a link to a network device", "  sudo rdmashim link add rxe0 type rxe netdev eth0", linkAdd),
		t.command("delete NAME", "Delete a link", "  sudo rdmashim link delete rxe0", linkDelete),
		t.linkUp(),
		t.command("gid [DEV[/PORT]]", "Show GID tables, with the best entry marked and why", "  rdmashim link gid\n  rdmashim link gid rxe0/1 -j", linkGID))
}

func linkShow(c *call, args []string) error {
	ports, _, err := c.links("link show", "", args)
	if err != nil {
		return err
	}
	rows := make([]row, len(ports))
	for i := range ports {
		rows[i] = c.linkRow(&ports[i])
	}
	return c.print(rows)
}

func (c *call) linkRow(p *netlinkmgr.Port) row {
	var r row
	r.add(field{"ifindex", p.DeviceIndex, ""}, field{"ifname", p.Device, "link " + p.Device + "/"}, field{"port", p.Port, fmt.Sprintf("%d ", p.Port)},
		some("subnet_prefix", p.SubnetPrefix), some("lid", p.LID), some("sm_lid", p.SMLID), some("lmc", p.LMC), some("state", p.State), some("physical_state", p.PhysState))
	if p.NetDev != "" {
		index := keyed("netdev_index", p.NetDevIndex)
		if c.details == 0 {
			index.text = ""
		}
		r.add(keyed("netdev", p.NetDev), index)
	}
	if c.details > 0 && p.Caps != nil {
		r.add(list("caps", netlinkmgr.PortCaps(*p.Caps)))
	}
	return r
}

func linkAdd(c *call, args []string) error {
	w := words{"link add", args}
	got, err := w.take("the link's NAME", "type:the link's type (rxe)", "netdev:the network device's name")
	if err != nil {
		return err
	}
	return c.m.AddLink(c.ctx, got[0], got[1], got[2])
}

func linkDelete(c *call, args []string) error {
	w := words{"link delete", args}
	got, err := w.take("the link's NAME")
	if err != nil {
		return err
	}
	return c.m.DeleteLink(c.ctx, got[0])
}

func (t *tool) linkUp() *cobra.Command {
	var o netlinkmgr.EnsureOptions
	cmd := t.command("up [NETDEV]", "Make sure that there is a usable rxe link; print its GID",
		"  sudo rdmashim link up\n  sudo rdmashim link up eth0 --mtu 4200 --name rxe0", func(c *call, args []string) error {
			if err := checkUp(&o, args); err != nil {
				return err
			}
			return linkUp(c, o)
		})
	cmd.Long = `up takes NETDEV, or finds a usable network device, loads rdma_rxe and what it
needs, sets the device's MTU if asked to and brings it up, creates the link
unless there is one, waits until its port is ACTIVE and a usable RoCE v2 GID is
there, and prints both. It may be called again; if it fails, what it had changed
is undone.`
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "name of the link (default: the one there, or the first free of rxe0, rxe1 …)")
	cli.BytesVar(f, &o.MTU, "mtu", "", 0, "MTU of the network device in bytes (default: as it is)")
	f.DurationVar(&o.Timeout, "timeout", netlinkmgr.DefaultTimeout, "how long to wait for port and GID")
	f.StringSliceVar(&o.Modules, "module", nil, "load this module as well (rdma_ucm, ib_umad)")
	f.BoolVarP(&o.DryRun, "dry-run", "n", false, "print what would be done, change nothing")
	return cmd
}

// checkUp takes the network device and checks the flags.
func checkUp(o *netlinkmgr.EnsureOptions, args []string) error {
	if len(args) > 1 {
		return cli.Usagef("link up: at most one network device, not %q", args)
	}
	if len(args) == 1 {
		o.NetDev = args[0]
	}
	if o.Timeout < 0 {
		return cli.Usagef("link up: --timeout %v is negative", o.Timeout)
	}
	if o.MTU != 0 && (o.MTU < netlinkmgr.MinMTU || o.MTU > netlinkmgr.MaxMTU) {
		return cli.Usagef("link up: --mtu %d is not between %d and %d", o.MTU, netlinkmgr.MinMTU, netlinkmgr.MaxMTU)
	}
	return nil
}

func linkUp(c *call, o netlinkmgr.EnsureOptions) error {
	if !o.DryRun {
		o.Log = func(step string) { fmt.Fprintln(c.err, step) }
	}
	start := time.Now()
	r, err := c.m.Ensure(c.ctx, o)
	if err != nil {
		return err
	}
	for _, s := range r.Warnings {
		fmt.Fprintln(c.err, "warning: "+s)
	}
	if o.DryRun && !c.json {
		_, err := fmt.Fprintln(c.out, strings.Join(r.Steps, "\n"))
		return err
	}
	if !c.json && c.details == 0 {
		for _, s := range r.Reasons {
			fmt.Fprintln(c.err, s)
		}
	}
	return c.print([]row{c.upRow(r, time.Since(start))})
}

func (c *call) upRow(r *netlinkmgr.Result, took time.Duration) row {
	var out row
	steps := append([]string{}, r.Steps...)
	if r.DryRun {
		out.add(field{"ifname", r.Device, ""}, field{"netdev", r.NetDev, ""}, field{"dry_run", true, ""}, field{"steps", steps, ""}, field{"reasons", r.Reasons, ""})
		return out
	}
	out.add(field{"ifname", r.Device, "link " + r.Device + "/"}, field{"port", r.Port, fmt.Sprintf("%d ", r.Port)},
		keyed("state", r.State), keyed("netdev", r.NetDev), keyed("gid_index", r.GIDIndex), keyed("gid", r.GID), keyed("gid_type", string(r.GIDType)))
	if r.UVerbs != "" {
		out.add(keyed("uverbs", r.UVerbs))
	}
	out.add(field{"created", r.Made.Link != "", ""}, field{"steps", steps, ""}, field{"reasons", r.Reasons, ""}, field{"warnings", append([]string{}, r.Warnings...), ""})
	if c.details > 0 {
		out.add(field{"took_ms", took.Milliseconds(), ""})
		for _, s := range r.Reasons {
			out.add(field{text: "\n    " + s})
		}
	}
	return out
}
