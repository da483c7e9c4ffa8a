"""The scenarios, in the order of their names."""

from __future__ import annotations

from world.scenario import Scenario
from world.scenarios.alarms import ALARMS
from world.scenarios.bills import BILLS
from world.scenarios.debts import DEBTS
from world.scenarios.festival import FESTIVAL
from world.scenarios.library import LIBRARY
from world.scenarios.orders import ORDERS
from world.scenarios.party import PARTY
from world.scenarios.spending import SPENDING

SCENARIOS: tuple[Scenario, ...] = (DEBTS, ORDERS, PARTY, FESTIVAL, BILLS, LIBRARY, SPENDING, ALARMS)
