"""Audits: measure the effect of an update against the untouched model and a retrain."""

from graftboost.audit.agreement import similarity
from graftboost.audit.backdoors import backdoor
from graftboost.audit.leaves import leaf_error
from graftboost.audit.loss_change import forgetting, learning
from graftboost.audit.membership import membership_attack
from graftboost.audit.removal import audit_removal
from graftboost.audit.result import Audit
from graftboost.audit.splits import robustness, split_shift

__all__ = [
    "Audit",
    "audit_removal",
    "backdoor",
    "forgetting",
    "leaf_error",
    "learning",
    "membership_attack",
    "robustness",
    "similarity",
    "split_shift",
]
