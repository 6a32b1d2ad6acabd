package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// deviceLine is a device as 'devices --json' prints it; the keys are stable.
type deviceLine struct {
	Device  string    `json:"device"`
	Kind    string    `json:"kind"`
	Address string    `json:"address,omitempty"`
	NetDev  string    `json:"netdev,omitempty"`
	State   string    `json:"state"`
	MTU     int       `json:"mtu"`
	GIDs    []gidLine `json:"gids"`
}

type gidLine struct {
	Index  int    `json:"index"`
	GID    string `json:"gid"`
	Type   string `json:"type"`
	NetDev string `json:"netdev,omitempty"`
}

func newDevices() *cobra.Command {
	var asJSON bool
	var d cli.DeviceFlags
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the devices that programs can open here",
		Long: `List the devices that programs can open here, with address, GIDs, MTU and port
state. Soft devices are made when they are opened: the list names one for each
address of this machine. With --device only that one is opened and shown.`,
		Example: `  rdmashim devices
  rdmashim devices --device soft:127.0.0.1 -j`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := listDevices(d.Device, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), list)
			}
			return printDevices(cmd.OutOrStdout(), list)
		},
	}
	d.AddDevice(cmd)
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func listDevices(name string, stderr io.Writer) ([]deviceLine, error) {
	infos, err := []uapi.DeviceInfo(nil), error(nil)
	if name == "" {
		infos, err = uapi.Devices()
	} else {
		var d *uapi.Device
		if d, err = cli.Open(name, stderr, uapi.OpenConfig{}); err == nil {
			defer d.Close()
			infos = make([]uapi.DeviceInfo, 1)
			infos[0], err = d.QueryDevice()
		}
	}
	if err != nil {
		return nil, err
	}
	list := make([]deviceLine, 0, len(infos))
	for _, i := range infos {
		l := deviceLine{Device: i.Device, Kind: string(i.Kind), NetDev: i.NetDev, State: string(i.PortState), MTU: i.MTU, GIDs: []gidLine{}}
		if i.Address.IsValid() {
			l.Address = i.Address.String()
		}
		for _, g := range i.GIDs {
			l.GIDs = append(l.GIDs, gidLine{g.Index, g.Addr.String(), string(g.Type), g.NetDev})
		}
		list = append(list, l)
	}
	return list, nil
}

func printDevices(w io.Writer, list []deviceLine) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "DEVICE\tKIND\tADDRESS\tNETDEV\tSTATE\tMTU\tGID")
	for _, d := range list {
		gid := "-"
		if len(d.GIDs) > 0 {
			gid = fmt.Sprintf("%d: %s (%s)", d.GIDs[0].Index, d.GIDs[0].GID, d.GIDs[0].Type)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", d.Device, d.Kind, cli.Dash(d.Address), cli.Dash(d.NetDev), d.State, d.MTU, gid)
		for _, g := range d.GIDs[min(1, len(d.GIDs)):] {
			fmt.Fprintf(t, "\t\t\t\t\t\t%d: %s (%s)\n", g.Index, g.GID, g.Type)
		}
	}
	return t.Flush()
}
