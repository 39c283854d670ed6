'use strict';
'require poll';
'require rpc';
'require ui';
'require view';

const declare = (method, params) =>
	rpc.declare({ object: 'ncmesh', method: method, params: params || [] });

const status = declare('status');
const commands = {
	push: declare('push', ['manifest', 'airtime']),
	apply: declare('apply', ['batch', 'canary', 'without_missing']),
	confirm: declare('confirm'),
	abort: declare('abort'),
	rollback: declare('rollback'),
};

/* Seconds between two looks at the roll-out. */
const INTERVAL = 5;

return view.extend({
	load: () => status(),

	/* Returns what there is to see: the roll-out that this router leads, or the one it follows. */
	told: (answer) => {
		if (answer.error)
			return [E('p', { class: 'alert-message warning' }, [answer.error])];

		const rollout = answer.rollout;
		if (!rollout) {
			const member = answer.member;
			const text = member
				? '%s, %s: %s'.format(member.model, member.running, member.standing || '-')
				: _('This router takes part in no roll-outs.');
			return [E('p', {}, [text])];
		}

		/* Text nodes: a name that another router chose must not become markup. */
		const rows = rollout.nodes.map((node) => [
			node.name,
			node.model || '-',
			node.running || '-',
			(node.standing || _('never heard')).replace(/_/g, ' '),
			node.batch ? String(node.batch) : '-',
			node.why || '-',
		].map((text) => document.createTextNode(text)));
		const table = new L.ui.Table(
			[_('Node'), _('Model'), _('Running'), _('State'), _('Batch'), _('Why')],
			{ sortable: true },
			E('em', _('No nodes')),
		);
		table.update(rows);
		const title = '%s %s: %s'.format(rollout.name, rollout.version, rollout.waits_for);
		return [E('h3', {}, [title]), table.render()];
	},

	/* Shows the answer of a command, or its error. */
	show: function(answer) {
		if (answer.error)
			ui.addNotification(null, E('p', {}, [answer.error]), 'danger');
		else
			L.dom.content(document.getElementById('ncmesh-fleet'), this.told(answer));
	},

	render: function(answer) {
		const value = (id) => document.getElementById('ncmesh-' + id).value;
		const field = (id, label, hint) => E('div', { class: 'cbi-value' }, [
			E('label', { class: 'cbi-value-title', for: 'ncmesh-' + id }, [label]),
			E('div', { class: 'cbi-value-field' }, [
				E('input', { id: 'ncmesh-' + id, type: 'text', placeholder: hint }),
			]),
		]);
		const button = (label, style, run) => E('button', {
			class: 'btn cbi-button cbi-button-' + style,
			click: ui.createHandlerFn(this, () => run().then((said) => this.show(said))),
		}, [label]);

		poll.add(() => status().then((said) => {
			const at = document.getElementById('ncmesh-fleet');
			if (at)
				L.dom.content(at, this.told(said));
		}), INTERVAL);

		return E('div', {}, [
			E('h2', {}, [_('Mesh roll-outs')]),
			E('div', { id: 'ncmesh-fleet' }, this.told(answer)),
			field('manifest', _('Manifest'), '/tmp/release/town.manifest'),
			field('airtime', _('Airtime'), '10%'),
			field('batch', _('Batch'), '10%'),
			field('canary', _('Canary'), _('node')),
			E('div', { class: 'cbi-page-actions' }, [
				button(_('Push'), 'action', () => commands.push(value('manifest'), value('airtime'))),
				button(_('Apply'), 'apply', () =>
					commands.apply(value('batch'), value('canary'), false)),
				button(_('Confirm'), 'action', () => commands.confirm()),
				button(_('Abort'), 'negative', () => commands.abort()),
				button(_('Roll back'), 'negative', () => commands.rollback()),
			]),
		]);
	},

	handleSaveApply: null,
	handleSave: null,
	handleReset: null,
});
