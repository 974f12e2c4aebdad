package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// defaultControl is where the unit file has the socket.
const defaultControl = "/run/bonsai/control"

// runCtl is the command ctl: it sends one control command and prints what comes back.
func runCtl(ctx context.Context, c *command, out io.Writer) error {
	if len(c.args) == 0 {
		return errors.New("ctl needs a command; bonsai ctl --help lists them")
	}
	if !isControlCommand(c.args[0]) {
		var all []string
		for _, known := range controlCommands {
			all = append(all, known.name)
		}
		if near := nearest(c.args[0], all); near != "" {
			return unknown("control command", "", c.args[0], all)
		}
		return fmt.Errorf("there is no control command %s; bonsai ctl --help lists them", c.args[0])
	}
	path, err := c.controlPath()
	if err != nil {
		return err
	}
	response, err := send(ctx, path, c.args[0], c.args[1:])
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("bonsai at %s says %s", path, response.Status)
		}
		_, err = io.Copy(out, response.Body)
		return err
	}
	return printReply(response.Body, c.json, out)
}

// send sends one control command over a socket and returns the response.
func send(ctx context.Context, path, command string, args []string) (*http.Response, error) {
	body, err := json.Marshal(request{Args: args})
	if err != nil {
		return nil, err
	}
	// The daemon lets few connections in: none stays open.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bonsai/"+command, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(r)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, fmt.Errorf("no bonsai answers at %s: %w; does it run with control: %s?", path, err, path)
	}
	return response, nil
}

func printReply(body io.Reader, asJSON bool, out io.Writer) error {
	var got struct {
		Text, Error string
		Data        json.RawMessage
	}
	if err := json.NewDecoder(body).Decode(&got); err != nil {
		return err
	}
	switch {
	case got.Error != "":
		return errors.New(got.Error)
	case !asJSON:
		_, err := io.WriteString(out, got.Text)
		return err
	}
	var pretty bytes.Buffer
	if len(got.Data) == 0 {
		got.Data = json.RawMessage("null")
	}
	if err := json.Indent(&pretty, got.Data, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, pretty.String())
	return err
}

func isControlCommand(name string) bool {
	for i := range controlCommands {
		if controlCommands[i].name == name {
			return true
		}
	}
	return false
}

// controlPath is what --control says, or the configuration file, or where the unit file has it.
func (c *command) controlPath() (string, error) {
	if c.control != "" {
		return c.control, nil
	}
	if c.config == "" {
		return defaultControl, nil
	}
	// Of the file the one key: all else, and lists of millions, is the daemon's to read.
	said, dir, err := readFile(c.config)
	if g := said["control"]; len(g.values) > 0 {
		return inDir(dir, g.values[0]), nil
	}
	if err == nil {
		err = fmt.Errorf("%s has no key control", c.config)
	}
	return "", err
}
