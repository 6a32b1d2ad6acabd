package main

import (
	"strings"
)

// statisticMode lists optional counters by port.
func statisticMode(c *rdmaCall, args []string) error {
	w := words{"statistic mode", args}
	supported, key := false, "optional-counters"
	if len(args) > 0 && args[0] != "" && strings.HasPrefix("supported", args[0]) {
		w.rest, supported, key = args[1:], true, "supported optional-counters"
	} else if len(args) > 0 && args[0] != "" && strings.HasPrefix("show", args[0]) {
		w.rest = args[1:]
	}
	ports, devices, err := c.statLinks(&w)
	if err != nil {
		return err
	}
	var rows []row
	for i, p := range ports {
		list, err := c.m.OptionalCounters(c.ctx, devices[i], p.Port)
		if err != nil {
			return err
		}
		var names []string
		for _, o := range list {
			if supported || o.On {
				names = append(names, o.Name)
			}
		}
		if names == nil {
			continue
		}
		r := linkPort(&p)
		separator := ","
		if c.pretty {
			separator = ",\n    "
		}
		r.add(field{key, names, key + " " + strings.TrimPrefix(separator, ",") + strings.Join(names, separator)})
		rows = append(rows, r)
	}
	return c.print(rows)
}

func statisticSet(c *rdmaCall, args []string) error {
	return c.setOptional("statistic set", args, true)
}

func statisticUnset(c *rdmaCall, args []string) error {
	return c.setOptional("statistic unset", args, false)
}

func (c *rdmaCall) setOptional(cmd string, args []string, named bool) error {
	w := words{cmd, args}
	// The words first: a device is asked for only by a line that is right.
	check := words{cmd, args}
	if _, err := check.after("link", "the link, DEV/PORT,"); err != nil {
		return err
	}
	if err := check.keyword("optional-counters"); err != nil {
		return err
	}
	var names []string
	if named {
		word, err := check.next("the counters' names")
		if err != nil {
			return err
		}
		names = strings.Split(word, ",")
	}
	if err := check.end(); err != nil {
		return err
	}
	d, port, err := c.statLink(&w)
	if err != nil {
		return err
	}
	return c.m.SetOptionalCounters(c.ctx, d, port, names)
}
