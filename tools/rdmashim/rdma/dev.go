package rdma

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
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
	name, err := w.next("the device's name")
	if err != nil {
		return err
	}
	value, err := w.after("name", "the new name")
	if err != nil {
		return err
	}
	if err := w.end(); err != nil {
		return err
	}
	return c.m.Rename(c.ctx, name, value)
}

func devShow(c *call, args []string) error {
	w := words{"dev show", args}
	var name string
	if len(args) > 0 {
		name, _ = w.next("")
	}
	if err := w.end(); err != nil {
		return err
	}
	devices, err := c.devices(name)
	if err != nil {
		return err
	}
	rows := make([]row, 0, len(devices))
	for _, d := range devices {
		rows = append(rows, c.devRow(&d))
	}
	return c.print(rows)
}

// devRow shows the protocol with details only: iproute2 before 6.11 does not
// show it, and scripts compare.
func (c *call) devRow(d *netlinkmgr.Device) row {
	var r row
	r.add(field{"ifindex", d.Index, fmt.Sprintf("%d: ", d.Index)}, field{"ifname", d.Name, d.Name + ": "})
	if d.NodeType != nil {
		r.add(keyed("node_type", *d.NodeType))
	}
	if c.details > 0 && d.Protocol != "" {
		r.add(keyed("protocol", d.Protocol))
	}
	if d.Firmware != "" {
		r.add(keyed("fw", d.Firmware))
	}
	if d.NodeGUID != nil {
		r.add(keyed("node_guid", *d.NodeGUID))
	}
	if d.SysImageGUID != nil {
		r.add(keyed("sys_image_guid", *d.SysImageGUID))
	}
	if c.details == 0 {
		return r
	}
	if d.AdaptiveMod != nil {
		r.add(onOff("adaptive-moderation", *d.AdaptiveMod))
	}
	if d.Caps != nil {
		r.add(list("caps", netlinkmgr.DeviceCaps(*d.Caps)))
	}
	return r
}
