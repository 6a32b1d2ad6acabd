package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// JSONFlag adds -j, --json to a command.
func JSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVarP(asJSON, "json", "j", false, "print JSON")
}

// PrintJSON prints a value as JSON for programs and people.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Print prints a value as JSON, or its text.
func Print(w io.Writer, asJSON bool, v any, text func(io.Writer) error) error {
	if asJSON {
		return PrintJSON(w, v)
	}
	return text(w)
}

// PrintLine prints a value as JSON on one line.
func PrintLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Size is a number of bytes in binary units: "1.5 MiB".
func Size(n int64) string {
	const units = "KMGT"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n)/1024, 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[u])
}

// Dash stands for nothing in a column.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
