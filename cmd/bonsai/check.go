package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"bonsai/cmd/bonsai/confine"
)

// runCheck is the command check, for a configuration that could be read: what a start would find wrong
// is an error, what only a reload would is told.
func runCheck(ctx context.Context, cmd *command, c *Config, out io.Writer) error {
	running := runningFolders(ctx, c)
	if os.Geteuid() == 0 { // nobody else can become the user, here or at start
		if err := c.becomeUser(); err != nil {
			return err
		}
	}
	for i := range c.Files {
		n := &c.Files[i]
		if running != nil && n.key != "control" && !running.Cover(n.path, n.write) {
			fmt.Fprintf(out, "%v; a reload refuses it, a restart takes it\n", n.problem("%s", outsideText(n.path, running, n.write)))
		}
	}
	fmt.Fprintf(out, "%s: ok\n", cmd.config)
	return nil
}

// runningFolders asks the bonsai that runs by this configuration, if one does, which folders it is
// locked in; nil where there is none, or it is not.
func runningFolders(ctx context.Context, c *Config) (f confine.Folders) {
	if c.Control == "" {
		return nil
	}
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	response, err := send(ctx, c.Control, "status", nil)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var status struct {
		Data struct{ Readable, Writable []string }
	}
	if json.NewDecoder(response.Body).Decode(&status) != nil {
		return nil
	}
	for _, path := range status.Data.Readable {
		f = append(f, confine.Folder{Path: path})
	}
	for _, path := range status.Data.Writable {
		f = append(f, confine.Folder{Path: path, Write: true})
	}
	return f
}
