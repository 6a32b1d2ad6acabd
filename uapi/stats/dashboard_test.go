package stats

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// labelsOfAll are the metrics that WritePrometheus writes of a reading with
// every counter that it knows, and their labels.
func labelsOfAll(t *testing.T) map[string][]string {
	t.Helper()
	d := example()
	c := Counters{"cm_requests": 1, "cm_drop_state": 1, "drop_icrc": 1, "fault_loss": 1}
	for name := range singles {
		c[name] = 1
	}
	for name := range members {
		c[name] = 1
	}
	d.Ports[0].Counters, d.QueuePairs[0].Counters = c, c
	d.QueuePairs[0].Peer = netip.MustParseAddrPort("127.0.0.2:4791")
	var b bytes.Buffer
	require.NoError(t, WritePrometheus(&b, []Device{d}))
	all := map[string][]string{}
	label := regexp.MustCompile(`(\w+)="`)
	for line := range strings.Lines(b.String()) {
		if metric, rest, ok := strings.Cut(line, "{"); ok && line[0] != '#' {
			for _, m := range label.FindAllStringSubmatch(rest, -1) {
				all[metric] = append(all[metric], m[1])
			}
		}
	}
	return all
}

// Each expression of the dashboard names metrics that there are, by labels that
// they have.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../docs/grafana.json")
	require.NoError(t, err)
	var board struct {
		UID, Title string
		Templating struct {
			List []struct{ Name, Query string }
		}
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	all := labelsOfAll(t)
	var (
		metric   = regexp.MustCompile(`\b(rdmashim_\w+)(?:\{(\w+)=~"\$(\w+)"\})?`)
		grouping = regexp.MustCompile(`\bby \(([\w, ]+)\)`)
		legend   = regexp.MustCompile(`\{\{(\w+)\}\}`)
	)
	var variables []string
	for _, v := range board.Templating.List {
		variables = append(variables, v.Name)
	}
	require.Contains(t, variables, "source")
	check := func(expr, shown string) {
		t.Helper()
		named := metric.FindAllStringSubmatch(expr, -1)
		require.NotEmpty(t, named, expr)
		require.Equal(t, strings.Count(expr, "("), strings.Count(expr, ")"), expr)
		left := legend.FindAllStringSubmatch(shown, -1)
		if by := grouping.FindStringSubmatch(expr); by != nil {
			groups := strings.Split(by[1], ", ")
			for _, l := range left {
				require.Contains(t, groups, l[1], expr)
			}
			left = nil
			for _, g := range groups {
				left = append(left, []string{"", g})
			}
		}
		for _, m := range named {
			require.NotEmpty(t, all[m[1]], "%s: no such metric as %s", expr, m[1])
			require.Equal(t, strings.Contains(expr, "rate("), strings.HasSuffix(m[1], "_total"), "%s: counters alone have a rate", expr)
			for _, l := range left {
				require.Contains(t, all[m[1]], l[1], expr)
			}
			if m[2] != "" {
				require.Contains(t, all[m[1]], m[2], expr)
				require.Contains(t, variables, m[3], expr)
			}
		}
	}
	check("rdmashim_port_info", strings.NewReplacer("label_values(rdmashim_port_info, ", "{{", ")", "}}").Replace(board.Templating.List[1].Query))
	var ids []int
	for _, p := range board.Panels {
		require.NotContains(t, ids, p.ID)
		ids = append(ids, p.ID)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, x := range p.Targets {
			check(x.Expr, x.LegendFormat)
		}
	}
	require.True(t, slices.IsSorted(ids))
}
