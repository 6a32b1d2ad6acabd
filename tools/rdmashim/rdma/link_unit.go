package rdma

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

func (t *tool) linkUnit() *cobra.Command {
	var o netlinkmgr.EnsureOptions
	cmd := t.command("unit [NETDEV]", "Print a systemd unit that calls 'link up' at boot",
		"  rdmashim link unit eth0 | sudo tee /etc/systemd/system/rdma-eth0.service", func(c *call, args []string) error {
			if err := checkUp("link unit", &o, args); err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			if err := unitable(append(o.Modules, program, o.NetDev, o.Name)...); err != nil {
				return err
			}
			if strings.HasPrefix(program, filepath.Clean(os.TempDir())+string(filepath.Separator)) {
				fmt.Fprintf(c.err, "warning: %s will not be there at boot: install the program first\n", program)
			}
			_, err = fmt.Fprint(c.out, unitText(program, o))
			return err
		})
	cmd.Long = `unit prints a systemd unit that calls 'link up' with the same arguments at boot,
when the network device is there. A link each takes a unit each. To install it:

    rdmashim link unit eth0 --mtu 4200 > /etc/systemd/system/rdma-eth0.service
    systemctl daemon-reload
    systemctl enable --now rdma-eth0`
	upFlags(cmd, &o)
	return cmd
}

// unitable refuses names with characters that mean something to systemd
// (systemd.service(5), COMMAND LINES), or that it does not take.
func unitable(names ...string) error {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:+@-"
	for _, s := range names {
		if strings.Trim(s, safe) != "" {
			return cli.Usagef("link unit: a unit cannot name %q, which has other characters than letters, digits and /._:+@-: rename it", s)
		}
	}
	return nil
}

// unitText is the unit. It waits for the network device (systemd.device(5)) and
// comes after the network's configuration, which might set the MTU again.
func unitText(program string, o netlinkmgr.EnsureOptions) string {
	needs, on := "network-online.target", "a network device that is found"
	command := []string{program, "link", "up"}
	if o.NetDev != "" {
		// systemd-escape(1)
		needs += " sys-subsystem-net-devices-" + strings.NewReplacer("-", `\x2d`, "@", `\x40`, "+", `\x2b`).Replace(o.NetDev) + ".device"
		on = o.NetDev
		command = append(command, o.NetDev)
	}
	if o.Name != "" {
		command = append(command, "--name", o.Name)
	}
	if o.MTU != 0 {
		command = append(command, "--mtu", fmt.Sprint(o.MTU))
	}
	for _, m := range o.Modules {
		command = append(command, "--module", m)
	}
	if o.Timeout != 0 && o.Timeout != netlinkmgr.DefaultTimeout {
		command = append(command, "--timeout", o.Timeout.String())
	}
	return fmt.Sprintf(`[Unit]
Description=rxe link on %s (rdmashim)
Wants=%s
After=systemd-modules-load.service %s

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=%s

[Install]
WantedBy=multi-user.target
`, on, needs, needs, strings.Join(command, " "))
}
