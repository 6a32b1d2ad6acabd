package rdma

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (t *tool) statistic() *cobra.Command {
	show := t.command("show [link DEV[/PORT]]", "Show hardware counters", "  rdmashim statistic show link rxe0/1\n  rdmashim statistic show -j", statisticShow)
	show.Aliases = []string{"list"}
	return t.object("statistic", "Show the counters of the kernel's RDMA links",
		"statistic shows the counters of the kernel's RDMA links in iproute2's words.", "  rdmashim statistic\n  rdmashim statistic show link rxe0/1 -jp", statisticShow, show)
}

func statisticShow(c *call, args []string) error {
	ports, devices, err := c.links("statistic show", "link:", args)
	if err != nil {
		return err
	}
	rows := make([]row, len(ports))
	for i, p := range ports {
		counters, err := c.m.Counters(c.ctx, devices[i], p.Port)
		if err != nil {
			return err
		}
		r := &rows[i]
		r.add(field{"ifname", p.Device, "link " + p.Device + "/"}, field{"port", p.Port, fmt.Sprintf("%d ", p.Port)})
		for _, n := range counters {
			f := keyed(n.Name, n.Value)
			if c.pretty {
				f.text = "\n    " + f.text
			}
			r.add(f)
		}
	}
	return c.print(rows)
}
