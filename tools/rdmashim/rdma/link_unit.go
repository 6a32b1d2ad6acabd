package rdma

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
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
			if err := unitable(program, o.NetDev, o.Name); err != nil {
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

// unitable refuses names that systemd does not take: a setting is one line of
// UTF-8, and a program's name has neither quotes nor backslashes (string_is_safe
// in systemd's string-util.c).
func unitable(program string, names ...string) error {
	bad := func(s string) bool { return !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) }
	for _, s := range names {
		if bad(s) {
			return cli.Usagef("link unit: a unit cannot name %q: rename it", s)
		}
	}
	if bad(program) || strings.ContainsAny(program, `'"\`) {
		return fmt.Errorf("link unit: a unit cannot start %q: install the program by another name", program)
	}
	return nil
}

// unitText is the unit. It waits for the network device (systemd.device(5)) and
// comes after the network's configuration, which might set the MTU again.
func unitText(program string, o netlinkmgr.EnsureOptions) string {
	needs, on := "network-online.target", "a network device that is found"
	command := []string{strings.ReplaceAll(unitQuote(program), "$$", "$"), "link", "up"} // no variables in a program's name
	if o.NetDev != "" {
		needs += " sys-subsystem-net-devices-" + unitEscape(o.NetDev) + ".device"
		on = strings.ReplaceAll(o.NetDev, "%", "%%")
		command = append(command, unitQuote(o.NetDev))
	}
	if o.Name != "" {
		command = append(command, "--name", unitQuote(o.Name))
	}
	if o.MTU != 0 {
		command = append(command, "--mtu", fmt.Sprint(o.MTU))
	}
	for _, m := range o.Modules {
		command = append(command, "--module", unitQuote(m))
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

// unitEscape writes a name as a part of a unit's name (systemd-escape(1)).
func unitEscape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == ':', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// unitQuote writes a word of a command line (systemd.service(5), COMMAND LINES):
// % and $ stand for something else there.
func unitQuote(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(s)
	if strings.ContainsAny(s, " \t;'\"\\") || s == "" {
		return `"` + s + `"`
	}
	return s
}
