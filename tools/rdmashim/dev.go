package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

func (t *rdmaTool) dev() *cobra.Command {
	show := t.command("show [DEV]", "List RDMA devices", devShow)
	show.Aliases = []string{"list"}
	set := t.command("set DEV name NEW | netns {NAME|PID} | adaptive-moderation {on|off}", "Rename a device, move it to a network namespace, or set how it moderates events", devSet)
	set.Example = "  sudo rdmashim dev set rxe0 name fast\n  sudo rdmashim dev set rxe0 netns blue"
	return t.object("dev", "Show, rename and move the kernel's RDMA devices",
		"dev shows and changes the kernel's RDMA devices in iproute2's words.", devShow, show, set)
}

func devSet(c *rdmaCall, args []string) error {
	w := words{"dev set", args}
	name, err := w.next("the device's name")
	if err != nil {
		return err
	}
	what, err := w.next("what to set (name, netns or adaptive-moderation)")
	if err != nil {
		return err
	}
	is := func(word string) bool { return what != "" && strings.HasPrefix(word, what) }
	switch {
	case is("name"), is("netns"):
		value, err := w.next("the new " + what)
		if err != nil {
			return err
		}
		if err := w.end(); err != nil {
			return err
		}
		if is("name") {
			return c.m.Rename(c.ctx, name, value)
		}
		return c.m.MoveToNetNS(c.ctx, name, value)
	case is("adaptive-moderation"):
		on, err := w.onOff()
		if err != nil {
			return err
		}
		return c.m.SetAdaptiveModeration(c.ctx, name, on)
	}
	return usagef("dev set: %q is none of name, netns, adaptive-moderation", what)
}

func devShow(c *rdmaCall, args []string) error {
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
func (c *rdmaCall) devRow(d *netlinkmgr.Device) row {
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
