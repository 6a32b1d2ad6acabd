package rdma

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
)

func (t *tool) dev() *cobra.Command {
	show := t.command("show [DEV]", "List RDMA devices", "  rdmashim dev show\n  rdmashim dev show rxe0 -d", devShow)
	show.Aliases = []string{"list"}
	set := t.command("set DEV name NEW", "Rename a device", "  sudo rdmashim dev set rxe0 name fast", devSet)
	return t.object("dev", "Show and rename the kernel's RDMA devices",
		"dev shows and renames the kernel's RDMA devices in iproute2's words.", "  rdmashim dev\n  rdmashim -j dev show rxe0", devShow, show, set)
}

func devSet(c *call, args []string) error {
	w := words{"dev set", args}
	got, err := w.take("the device's name", "name:the new name")
	if err != nil {
		return err
	}
	return c.m.Rename(c.ctx, got[0], got[1])
}

func devShow(c *call, args []string) error {
	if len(args) > 1 {
		return cli.Usagef("dev show: nothing may follow, but %q does", args[1])
	}
	devices, err := c.devices(append(args, "")[0])
	if err != nil {
		return err
	}
	rows := make([]row, len(devices))
	for i := range devices {
		rows[i] = c.devRow(&devices[i])
	}
	return c.print(rows)
}

// devRow shows the protocol with details only: iproute2 before 6.11 does not
// show it, and scripts compare.
func (c *call) devRow(d *netlinkmgr.Device) row {
	var r row
	r.add(field{"ifindex", d.Index, fmt.Sprintf("%d: ", d.Index)}, field{"ifname", d.Name, d.Name + ": "}, some("node_type", d.NodeType))
	if c.details > 0 && d.Protocol != "" {
		r.add(keyed("protocol", d.Protocol))
	}
	if d.Firmware != "" {
		r.add(keyed("fw", d.Firmware))
	}
	r.add(some("node_guid", d.NodeGUID), some("sys_image_guid", d.SysImageGUID))
	if c.details > 0 && d.AdaptiveMod != nil {
		r.add(onOff("adaptive-moderation", *d.AdaptiveMod))
	}
	if c.details > 0 && d.Caps != nil {
		r.add(list("caps", netlinkmgr.DeviceCaps(*d.Caps)))
	}
	return r
}
