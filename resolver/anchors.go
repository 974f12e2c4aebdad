package resolver

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bonsai/resolver/validate"
	"bonsai/wire"
)

// KeepAnchors says how the root's trust anchors are kept up to date. The zero value leaves them as
// they were configured.
type KeepAnchors struct {
	Follow bool   // follow the root's keys (RFC 5011), and tell its servers which are trusted (RFC 8145)
	File   string // where their state lies; "" keeps it in memory alone
}

// firstAnchorCheck is how long after the start the root's keys are looked at, so that clients come
// first.
const firstAnchorCheck = 10 * time.Second

// newKeeper reads the state file, or begins with the configured anchors where there is none. A file
// that can't be read is an error: to begin anew would trust a key that was revoked.
func newKeeper(config *Config, now int64) (*validate.Keeper, error) {
	anchors := config.Validate.Anchors
	if config.Anchors.File == "" {
		return validate.NewKeeper(wire.Root, anchors, now), nil
	}
	f, err := os.Open(config.Anchors.File)
	if errors.Is(err, fs.ErrNotExist) {
		return validate.NewKeeper(wire.Root, anchors, now), nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	keeper, err := validate.ReadKeeper(f, config.Anchors.File, wire.Root)
	if err != nil {
		return nil, err
	}
	keeper.Add(anchors, now)
	return keeper, nil
}

// followAnchors asks for the root's keys from time to time until the Resolver is closed (RFC 5011
// §2.3).
func (r *Resolver) followAnchors() {
	wait := firstAnchorCheck
	for {
		timer := time.NewTimer(wait)
		select {
		case <-r.ctx.Done():
			timer.Stop()
			return
		case <-r.retired:
			timer.Stop()
			return
		case <-timer.C:
		}
		wait = r.checkAnchors()
	}
}

// checkAnchors looks at the root's keys once and returns when to do so again.
func (r *Resolver) checkAnchors() time.Duration {
	defer r.survive()
	ctx, cancel := context.WithTimeout(r.ctx, r.config.Patience)
	defer cancel()
	now := int64(r.now())
	t := r.newTree()
	t.anew = true
	keys := wire.RRset{Owner: wire.Root, Type: wire.TypeDNSKEY}
	res, err := t.ask(ctx, question{name: wire.Root, t: wire.TypeDNSKEY, link: true})
	failed := err != nil || res.content == nil || res.content.Status != wire.Secure || len(res.content.Answer) == 0
	if !failed {
		keys = res.content.Answer[0]
		r.updateAnchors(&keys, now)
		r.signalAnchors(ctx)
	}
	return time.Duration(validate.NextQuery(&keys, failed, now)) * time.Second
}

// clockWarning is how often at most the clock is doubted in the log, in seconds.
const clockWarning = 60

// doubtClock counts and tells that the clock is wrong by what the root has signed.
func (r *Resolver) doubtClock(c validate.Clock) {
	what, count := "behind: no signature of the root is valid yet", &r.stats.clockBehind
	if c == validate.ClockAhead {
		what, count = "ahead: all signatures of the root have expired", &r.stats.clockAhead
	}
	count.Add(1)
	now, told := r.now(), r.stats.clockTold.Load()
	if (told == 0 || now-told >= clockWarning) && r.stats.clockTold.CompareAndSwap(told, now) {
		r.log.Warn("nothing validates, for the clock seems to be "+what, "now", time.Unix(int64(now), 0).UTC())
	}
}

// sharedKeeper is handed on from a Resolver to its successor.
type sharedKeeper struct {
	sync.Mutex
	*validate.Keeper
}

// trustKept takes the keeper's anchors.
func (r *Resolver) trustKept() {
	r.keeper.Lock()
	defer r.keeper.Unlock()
	r.setTrust()
}

// setTrust gives the keeper's anchors, which is locked, to all who validate.
func (r *Resolver) setTrust() {
	r.validator.SetTrust(r.keeper.Anchors(), r.config.Validate.Insecure)
	for _, realm := range r.realms {
		realm.validator.SetTrust(r.keeper.Anchors(), r.config.Validate.Insecure)
	}
}

// updateAnchors shows the root's keys to the keeper and takes the anchors that it then has, which a
// predecessor may have changed as well.
func (r *Resolver) updateAnchors(keys *wire.RRset, now int64) {
	r.keeper.Lock()
	defer r.keeper.Unlock()
	changed := r.keeper.Update(keys, now)
	r.setTrust()
	if changed {
		r.saveAnchors()
	}
}

// saveAnchors writes the keeper's state. What was judged by a key that is no longer trusted goes.
func (r *Resolver) saveAnchors() {
	r.log.Info("trust anchors of the root have changed", "key tags", r.validator.KeyTags(wire.Root))
	r.cache.FlushName(wire.Root, wire.TypeDNSKEY)
	if r.config.Anchors.File == "" {
		return
	}
	if err := replaceFile(r.config.Anchors.File, r.keeper.AppendTo(nil)); err != nil {
		r.log.Error("trust anchors not saved", "error", err)
	}
}

// replaceFile writes a file whole or not at all.
func replaceFile(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = bytes.NewReader(content).WriteTo(f); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// signalAnchors tells the root's servers which keys are trusted here (RFC 8145 §5.1): the query is
// the message, its answer is not looked at.
func (r *Resolver) signalAnchors(ctx context.Context) {
	if name := r.validator.SignalName(wire.Root); name != "" {
		t := r.newTree()
		t.ask(ctx, question{name: name.Canonical(), t: wire.TypeNULL, link: true})
	}
}
