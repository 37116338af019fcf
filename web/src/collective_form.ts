// One collective on a cluster, over sizes.
import type { Facts, Fields, Question } from './api';
import { h } from './dom';
import { choiceField, declared, declaredChoices, numberField, put, setFlag } from './fields';
import { words } from './format';
import type { Typed } from './state';

export class CollectiveForm {
  readonly element: HTMLElement;
  private readonly cluster;
  private readonly op;
  private readonly nodes;
  private readonly ranks;
  private readonly from = choiceField('Smallest message', [['1K', '1 KiB'], ['64K', '64 KiB'], ['1M', '1 MiB']], '1K');
  private readonly to = choiceField('Largest message', [['16M', '16 MiB'], ['256M', '256 MiB'], ['1G', '1 GiB'], ['4G', '4 GiB'], ['16G', '16 GiB']], '4G');
  private readonly protocol;

  constructor(facts: Facts) {
    const whole = { min: 0, placeholder: 'all', required: false };
    this.cluster = choiceField('Cluster', facts.clusters.map((name): [string, string] => [name, words(name)]), 'h100_ib_rail');
    this.op = choiceField('Collective', declaredChoices(facts, 'collective', 'op'), 'all_reduce');
    this.nodes = numberField('Nodes', '', { ...declared(facts, 'collective', 'nodes'), ...whole });
    this.ranks = numberField('Ranks', '', { ...declared(facts, 'collective', 'ranks'), ...whole });
    this.protocol = choiceField('Protocol', declaredChoices(facts, 'collective', 'protocol'), 'auto');
    this.element = h('fieldset', {}, h('legend', {}, 'Collective'), this.cluster.element, this.op.element,
      h('div', { class: 'row' }, this.nodes.element, this.ranks.element, this.from.element, this.to.element), this.protocol.element);
  }

  put(of: Typed): void {
    const [from, to] = of('sizes').split(':', 2);
    put(this.cluster.control, of('cluster'), 'h100_ib_rail');
    put(this.op.control, of('op'), 'all_reduce');
    put(this.nodes.control, of('nodes'), '');
    put(this.ranks.control, of('ranks'), '');
    put(this.from.control, from ?? '', '1K');
    put(this.to.control, to ?? '', '4G');
    put(this.protocol.control, of('protocol'), 'auto');
  }

  question(): Question {
    const flags: Fields = { cluster: this.cluster.control.value, op: this.op.control.value, sizes: `${this.from.control.value}:${this.to.control.value}` };
    setFlag(flags, 'nodes', this.nodes.control);
    setFlag(flags, 'ranks', this.ranks.control);
    setFlag(flags, 'protocol', this.protocol.control, 'auto');
    return { command: 'collective', ...flags };
  }
}
