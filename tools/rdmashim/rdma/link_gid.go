package rdma

import (
	"fmt"
	"text/tabwriter"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// linkGID shows GID tables.
func linkGID(c *call, args []string) error {
	ports, _, err := c.links("link gid", "", args)
	if err != nil {
		return err
	}
	var gids []netlinkmgr.GID
	for _, p := range ports {
		list, err := c.m.GIDs(c.ctx, p.Device, p.Port)
		if err != nil {
			return err
		}
		gids = append(gids, list...)
	}
	if !c.json {
		return c.gidTable(gids)
	}
	rows := make([]row, len(gids))
	for i, g := range gids {
		rows[i].add(field{key: "ifname", value: g.Device}, field{key: "port", value: g.Port}, field{key: "index", value: g.Index},
			field{key: "gid", value: g.GID}, field{key: "address", value: g.Addr()}, field{key: "type", value: string(g.Type)}, field{key: "netdev", value: g.NetDev},
			field{key: "scope", value: string(g.Scope)}, field{key: "usable", value: g.Usable}, field{key: "best", value: g.Best}, field{key: "reason", value: g.Why})
	}
	return c.print(rows)
}

func (c *call) gidTable(gids []netlinkmgr.GID) error {
	if len(gids) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(c.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "BEST\tLINK\tINDEX\tGID\tTYPE\tNETDEV\tREASON")
	for _, g := range gids {
		mark := "-"
		if g.Best {
			mark = "best"
		}
		fmt.Fprintf(t, "%s\t%s/%d\t%d\t%s\t%s\t%s\t%s\n", mark, g.Device, g.Port, g.Index, g.GID, g.Type, cli.Dash(g.NetDev), g.Why)
	}
	return t.Flush()
}
