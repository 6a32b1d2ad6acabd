package rdma

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

func (t *tool) dev() *cobra.Command {
	show := t.command("show [DEV]", "List RDMA devices", "  rdmashim dev show\n  rdmashim dev show rxe0 -d", devShow)
	show.Aliases = []string{"list"}
	set := t.command("set DEV {name NEW | netns {NAME|PID}}", "Rename a device, or move it to another network namespace",
		"  sudo rdmashim dev set rxe0 name fast\n  sudo rdmashim dev set mlx5_0 netns blue", devSet)
	return t.object("dev", "Show, rename and move the kernel's RDMA devices",
		"dev shows, renames and moves the kernel's RDMA devices in iproute2's words.", "  rdmashim dev\n  rdmashim -j dev show rxe0", devShow, show, set)
}

func devSet(c *call, args []string) error {
	w := words{"dev set", args}
	dev, err := w.next("the device's name")
	if err != nil {
		return err
	}
	what, err := w.next("the word name or netns")
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix("name", what):
		got, err := w.take("the new name")
		if err != nil {
			return err
		}
		return c.m.Rename(c.ctx, dev, got[0])
	case strings.HasPrefix("netns", what):
		got, err := w.take("the network namespace, a NAME or a PID,")
		if err != nil {
			return err
		}
		f, err := openNetNS(got[0])
		if err != nil {
			return err
		}
		defer f.Close()
		return c.m.Move(c.ctx, dev, f)
	}
	return cli.Usagef("%s: %q stands where the word name or netns belongs", w.cmd, what)
}

// openNetNS opens a network namespace by the name that 'ip netns add' gave it,
// by a process in it, or by its file's path.
func openNetNS(name string) (*os.File, error) {
	if strings.Contains(name, "/") {
		return os.Open(name)
	}
	f, err := os.Open("/run/netns/" + name)
	if _, e := strconv.ParseUint(name, 10, 32); e == nil && errors.Is(err, os.ErrNotExist) {
		return os.Open("/proc/" + name + "/ns/net")
	}
	return f, err
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
