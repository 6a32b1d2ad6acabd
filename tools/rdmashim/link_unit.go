package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

func (t *rdmaTool) linkUnit() *cobra.Command {
	var prune bool
	cmd := t.setupCommand("unit", "Print a systemd unit that applies a file at boot", `unit checks FILE and prints a systemd unit that applies it at boot, when its
network devices are there. To install it:

    rdmashim link unit /etc/rdmashim.toml > /etc/systemd/system/rdmashim-links.service
    systemctl daemon-reload
    systemctl enable --now rdmashim-links`,
		func(c *rdmaCall, path string, s netlinkmgr.Setup) error {
			if path == "-" {
				return usagef("link unit: a unit needs a FILE that is there at boot, not stdin")
			}
			path, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			if err := unitable(program, path); err != nil {
				return err
			}
			if strings.HasPrefix(program, filepath.Clean(os.TempDir())+string(filepath.Separator)) {
				fmt.Fprintf(c.err, "warning: %s will not be there at boot: install the program first\n", program)
			}
			_, err = fmt.Fprint(c.out, unitText(program, path, prune, s))
			return err
		})
	pruneFlag(cmd, &prune)
	return cmd
}

// unitable refuses names that systemd does not take: a setting is one line of
// UTF-8, and a program's name has neither quotes nor backslashes (string_is_safe
// in systemd's string-util.c).
func unitable(program, path string) error {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
		return usagef("link unit: a unit cannot name %q: rename it", path)
	}
	if !utf8.ValidString(program) || strings.ContainsFunc(program, unicode.IsControl) || strings.ContainsAny(program, `'"\`) {
		return fmt.Errorf("link unit: a unit cannot start %q: install the program by another name", program)
	}
	return nil
}

// unitText is the unit. It waits for the network devices of the initial
// network namespace (systemd.device(5)) and comes after those who configure
// them, or they might set the MTU again.
func unitText(program, path string, prune bool, s netlinkmgr.Setup) string {
	after := []string{"systemd-modules-load.service", "network-online.target"}
	wants := []string{"network-online.target"}
	for _, l := range s.Links {
		if l.NetNS == "" {
			dev := "sys-subsystem-net-devices-" + unitEscape(l.NetDev) + ".device"
			after, wants = append(after, dev), append(wants, dev)
		}
	}
	// No variables are replaced in the program's name.
	command := []string{strings.ReplaceAll(unitQuote(program), "$$", "$"), "link", "apply"}
	if prune {
		command = append(command, "--prune")
	}
	command = append(command, unitQuote(path))
	return fmt.Sprintf(`[Unit]
Description=rxe links of %s (rdmashim)
%s
Wants=%s
After=%s

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=%s

[Install]
WantedBy=multi-user.target
`, strings.ReplaceAll(path, "%", "%%"), unitCondition(path), strings.Join(wants, " "), strings.Join(after, " "), strings.Join(command, " "))
}

// unitCondition is the setting that path exists. A backslash at the end of its
// line would continue the line, and a space there would be left out: a path that
// ends so is written as a pattern (glob(7)).
func unitCondition(path string) string {
	pattern := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "%", "%%").Replace(path)
	switch {
	case strings.HasSuffix(path, `\`):
		return "ConditionPathExistsGlob=" + pattern
	case strings.HasSuffix(path, " "):
		return "ConditionPathExistsGlob=" + strings.TrimSuffix(pattern, " ") + "[ ]"
	}
	return "ConditionPathExists=" + strings.ReplaceAll(path, "%", "%%")
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
