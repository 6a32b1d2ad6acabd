package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readVersion() versionInfo {
	v := versionInfo{Version: cli.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return v
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the revision and what it was built with",
		Example: `  rdmashim version
  rdmashim version -j`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := readVersion()
			if asJSON {
				return cli.PrintLine(cmd.OutOrStdout(), v)
			}
			line := fmt.Sprintf("rdmashim %s", v.Version)
			if v.Revision != "" {
				line += " " + v.Revision[:min(12, len(v.Revision))]
				if v.Modified {
					line += "+modified"
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s (%s, %s)\n", line, v.Go, v.Platform)
			return err
		},
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}
